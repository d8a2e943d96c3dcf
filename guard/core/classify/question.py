"""Find in an agent's last message the question without whose answer it cannot go on.

What decides is where the message stops. It stops for an input if its end asks for a choice, a fact or a permission, or says
that the agent waits for one. An offer after a report of finished work, a courtesy, a question that the message answers
itself, and whatever is quoted are none. A false question stops a run, and a missed one costs only a probe.
"""

import re
from itertools import takewhile

_TAIL = 4000
_LAST_SENTENCES = 4
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(
    r"^[ \t]*(?:>|\|).*$|^(?: {4}|\t)(?![ \t]*(?:[-*•]|\d{1,2}[.)])\s).*$", re.MULTILINE
)
_INLINE = re.compile(r"`[^`\n]+`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|(?<![\w])'[^'\n]{1,300}'(?!\w)")
_ITEM = re.compile(r"\s*(?:[-*•]|\(?\d{1,2}[.)]|\(?[a-zA-Z][.)]|option \w[:)])\s*\S", re.IGNORECASE)
_MARK = re.compile(r"\A(?:[#>*_\s-]|\d{1,2}[.)]\s|\(?[a-zA-Z]\)\s)+|[*_\s)\]]+\Z")
_CHOICES = re.compile(r"[?？][*_]*\s*([(\[][^()\[\]\n]{1,40}[)\]])")
_SENTENCES = re.compile(r"(?<=[.!?？])[*_)\]]*\s+|(?<=？)")


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_MADE = (
    r"(?:implemented|finished|completed|added|fixed|updated|refactored|removed|created|renamed|written|wrote"
    r"|migrated|resolved"
    r"|committed|pushed|merged|replaced|converted|moved|extracted|documented|deleted|upgraded|changed|made"
    r"|built|set up|rewrote|rewritten)"
)
_NO_RESULT = (
    r"(?:need|want|tri|look|search|check|scann|inspect|examin|review|investigat|explor|analy[sz]|compar|consider|studi|trac"
    r"|notic|discover|identifi|locat|encounter|receiv|attempt|fail|start|plann|prepar|draft|outlin|sketch|propos|hop|ask"
    r"|mention|list|load|open|clon|download|expect|assum|wonder|decid|hesitat|stopp|paus|block|wait|halt|pend|request"
    r"|reach|read|report|seem|us|suppos|interest|narrow|hold|bas|relat|work|queri|ping|call|stuck|proceed|reproduc"
    r"|allow|unne|indee|agre)ed\b|(?!freed\b|guaranteed\b)\w*eed\b|embed\b"
)
"""Past tenses of looking around, planning and stopping, which tell of no result; and what is no past tense: need, proceed."""
_DONE = _words(
    rf"\b(?:i|we)(?:'ve| have)?(?: now| just| also| successfully)* {_MADE}\b(?! (?:no|nothing|none)\b)",
    rf"\b(?:i|we)(?:'ve| have)?(?: now| just| also| successfully)* (?!{_NO_RESULT})[a-z]{{2,}}ed\b",
    rf"(?:^|[.!:,\n]\s*|[-*•]\s+|\b(?:but|and|so) ){_MADE}\b|\ball green\b",
    rf"(?:^|[.!\n]\s*|[-*•]\s+)(?!{_NO_RESULT})[a-z]{{2,}}ed (?:the|a|an|all|both|to|two|three|it|them|from|\d+)\b",
    r"\b(?:tests?|suite|build|ci|lint\w*|types?|checks?)\b[^.!?\n]{0,25}(?<!not )\b(?:green|clean)\b",
    r"\b(?!needs|requires|waits|depends|fails|is\b|has\b|says\b|does\b)[a-z]{2,}s\b[^.!?,;:\n]{0,40} (?:now|again)[.;:,!]",
    r"\b(?:i|we)(?:'ve| have)(?: now| just| also)* (?:given|taught|drawn|put|split|cut|set|kept|rebuilt|redone|shown"
    r"|brought)\b",
    r"\bthe new \w+ (?!needs|requires|depends|fails|is\b|has\b|does)[a-z]{2,}s\b|\bmission accomplished\b",
    rf"(?:\A|[.!:\n]\s*)(?!not|no|nothing|none|never)(?:\w+ ){{1,3}}(?<!not )(?<!be )(?<!is )(?<!never ){_MADE}"
    rf"(?:[.,;:!]| (?:as|in|with|on) )"
    r"|\ball set\b|\b(?:none|nothing)(?: of (?:it|them|these|those))? (?:needs?|needed|requires?|required) (?!your\b)"
    r"|\b\d+ passed\b(?!,? [1-9]\d* failed)|\b(?:the|this|it|that|both|all)\b[^.!?\n]{0,30} works?[.;!]|\b(?:tests"
    r"|suites?|specs|builds?) (?:all |now )?pass\b",
    r"\bcommit [0-9a-f]{7,40}\b|\beach with (?:a|its) (?:own )?(?:regression )?test|(?:\A|[.!\n]\s*"
    r"|\ball\b[^.!?\n]{0,30} )(?:squashed|solved|sorted|shipped)\b",
    r"(?<!\bare )(?<!\bis )\b(?:fine|cleanly|correctly|successfully|as expected|without (?:\w+ )?(?:errors|warnings"
    r"|changes|issues|problems))[.,;!]"
    r"|\b(?:is|are) (?!missing|broken|empty|gone|blocked|unavailable|not\b)[a-z]+ now[.,;!]",
    r"\b(?:no|nothing)(?: \w+)?(?: is| are| was| were)? (?:needed|required|necessary|left to do|to (?:do|change|fix"
    r"|commit))\b",
    r"\balready (?:on main|in place|there|fixed|done|implemented|handled|covered|correct|merged|supported)\b",
    rf"\b(?:tests?|cases|docs|documentation|readme|changelog|types|suite|branch|pr) (?:\w+ )?{_MADE}\b",
    r"(?:\A|\n)\W*(?:summary|results?|what (?:i did|changed)|changes made)\b"
    r"|\bhere's what (?:changed|i (?:did|changed))\b",
    r"\bthat's (?:all|everything|it)\b",
    r"\b(?:is|are|it's|they're) now \w+ed\b|\bnow (?!needs|requires|waits|depends|fails|is\b|has\b|says\b)[a-z]+s\b",
    r"(?<!not )(?<!n't )(?<!when it's )(?<!once it's )(?<!until it's )(?<!when )(?<!once )(?<!when you're )"
    r"(?<!once you're )\b(?:done|finished"
    r"|complete)\b\s*[.!:,;—-]",
    r"(?<!\bi )(?<!\bwe )(?<!\bnothing )(?<!\bnone )\b(?:is|are|was|were|has been|have been)(?: now| all| both"
    r"| fully)* (?:done|finished|complete"
    r"|completed|fixed|in place|implemented"
    r"|merged|committed|pushed|ready|green|working|migrated|updated|added|removed|checked off|checked|ticked|closed|solved"
    r"|covered|tested|deployed|published|released|ported|translated|shipped|verified|live|clean|generated|localized"
    r"|replaced|renamed|rewritten|refactored|upgraded)\b",
    r"\b(?:all|\d+)(?: of)?(?: the)?(?: \d+)?(?: unit)? (?:tests?|checks) (?:now |are |still )*(?:pass\w*|green)\b",
    r"\btests? (?:now |all |are )*(?:pass|passed|passing|green)\b|\beverything (?!(?:i|we) need)[^.!?\n]{0,30}?\b"
    r"(?:works|passes|is)\b"
    r"|\b(?:it|that|this|everything|all)'s (?:all |now )*(?:finished|complete|fixed|in place|implemented|merged|committed"
    r"|pushed|working|green)\b|\b(?!(?:is|was|has|does|this)\b)[a-z]+s now (?!need|require|wait|want|depend|fail|have"
    r"|are\b)[a-z]+\b"
    r"|\bnow (?:works|passes|supports?)\b",
)
_OPEN = _words(
    r"\b(?:until|unless|once) you (?:confirm|decide|approve|answer|reply|choose|tell|give|say)\b",
    r"\b(?:before|until|unless|once) (?:i|we|making|doing|going|touching|starting|proceeding)\b",
    r"\b(?:i|we|but|and)(?: still)? (?:can't|cannot|can not|couldn't|could not|won't|am unable|was unable|haven't"
    r"|have not|didn't|did not)\b(?! (?:\w+ )?(?:verify|verified|check|checked|reproduce|reproduced|measure)\b)",
    r"\b(?:blocked|stuck|paused|ambiguous|unclear|unsure|undecided)\b|(?:\bnot|n't) (?:sure|certain|clear|obvious"
    r"|specified|yet)\b"
    r"(?! you(?:'ll|r?\b))",
    r"\b(?:would|it'd) (?:also )?(?:need|require|mean|break|remove|delete|drop|destroy)\b|\bmeans (?:dropping"
    r"|changing|breaking"
    r"|removing|deleting|losing)\b|\bfor (?:that|the (?:last|second|third|other|remaining)) (?:one|part|item|step|task)\b"
    r"|\bdepends? on (?:whether|which|what|how|who)\b",
    r"\bno changes (?:(?:were|have been) (?!needed|necessary|required)|yet)|\bnothing (?:was|is|has been) (?:changed"
    r"|touched|\w+ yet)|\bdo(?:es)?n't (?:say"
    r"|specify|mention|tell)\b",
    r"\b(?:i|we) (?:don't|do not) know\b",
    r"\b(?:two|three|several|a few|multiple|both) (?:ways|options|approaches|choices|possibilities|candidates"
    r"|interpretations)\b",
    r"\b(?:needs?|requires?) (?:to know|your|you to|a decision|an answer|clarification|input|access|credentials)\b",
    r"(?<!with )(?<!start )(?<!begin )\b(?:steps?|phases?|stages?|parts?) (?:[2-9]|two|three|four)\b",
    r"\b(?:is|are) missing\b|\b(?:i|we)(?:'ve| have)? (?:stopped|paused) (?:here|there|it|before|at)\b"
    r"|\bstopp(?:ed|ing) here\b",
)
_STOPS = _words(
    r"\b(?:can't|cannot|can not|won't|unable to|not able to|couldn't) (?:safely )?(?:proceed|continue|go on"
    r"|go further|move forward|start"
    r"|begin|finish|complete|decide|do (?:this|that|it))\b.{0,80}\b(?:without|until|unless|before)\b",
    r"\b(?:i|we)(?:'m| am|'ll| will|'re| are|'ve| have)?(?: \w+){0,2} (?:wait(?:ing)?|hold(?:ing)?(?: off| on)?|paus(?:e"
    r"|ed|ing)|blocked|stop(?:ped|ping)?)"
    r"(?: here)?\b.{0,60}\b(?:your|you|a person|someone|a human|confirmation|approval|answer|decision|instructions)\b",
    r"\A(?:still |now )?(?:waiting|awaiting|blocked|paused|pending)(?: (?:for|on|until))?(?: \w+)? (?:your|you"
    r"|confirmation|approval|instructions)\b",
    r"\b(?:need|require|want|waiting (?:for|on)|await(?:ing)?|without|pending|once i have|subject to) (?:your|a"
    r"|an|some|explicit|the user's)"
    r"(?: \w+)? (?:go-ahead|go ahead|approval|confirmation|decision|input|answer|permission|sign-off|okay|ok|yes"
    r"|call|choice|clarification"
    r"|guidance|direction|instructions|consent|credentials?|password|api key|access token|token|answers)\b",
    r"\b(?:i|we)(?: still| first| really| do)? need (?:(?:you|a human|a person|someone|the user"
    r"|an? (?:admin\w*|owner|maintainer)) (?:[\w-]+ ){0,5}?to|to know|from you|(?:read |write |push |admin )?access\b"
    r"|permission\b|credentials\b|clarification\b|approval\b)"
    r"|\b(?:i|we)(?:'ll| will)?(?: still| first)? need (?:\S+ ){1,12}?(?:to|before i can|so (?:that )?i can)"
    r" (?:go on|proceed|continue|start|begin|finish|go further)\b"
    r"|\b(?:i|we) need (?!to\b)(?:\S+ ){1,8}?before (?:i|we) can\b",
    r"\b(?:i|we)(?:'d| would) like (?:(?:your|an?|explicit) ){0,2}(?:confirmation|approval|decision|go-ahead|answer"
    r"|sign-off|okay|ok|permission|consent|blessing|input|guidance)\b",
    r"\b(?:can|could|will|may) only (?:\w+ )?(?:continue|proceed|start|begin|finish|go on|do (?:this|that|it)|resume"
    r"|carry on)\b"
    r".{0,30}\b(?:after|once|when|if|with)\b",
    r"\bif you (?:can|could)?\b.{1,80}\b(?:i'll|i will|i can|then i) (?:carry on|continue|proceed|go on|finish|resume"
    r"|start|begin)\b",
    r"\b(?:when|if|as soon as) you (?:give me|say|confirm|approve|tell me)\b",
    r"\b(?:need|require|want|wait\w*|await\w*|without|pending)\b.{1,60}\bfrom (?:you|your (?:side|team|end)|someone"
    r"|a person|the (?:user|owners?|maintainers?))\b",
    r"\b(?:blocked|stuck|paus(?:ed|ing)|stopp(?:ed|ing)|on hold"
    r"|holding(?: off)?|wait(?:ing)?|can't (?:continue|proceed|go on|start))\b.{0,20}"
    r"\b(?:until|till)\b.{1,60}\b(?:decided|settled|clarified|clear|confirmed|approved|answered|agreed|granted|provided"
    r"|signed off)\b",
    r"\b(?:it's|it is|that's|this is|the (?:choice|decision) is) (?:your (?:call|choice|decision)|up to you"
    r"|yours)\b|\A(?:so )?your (?:call|choice|decision)\b"
    r"|[:;,—-] ?(?:so )?your (?:call|choice|decision)\W*\Z",
    r"\A(?:in order )?(?:to|before (?:i|we)(?: can)?) [^,]{1,40}, (?:i|we)(?:'ll|'d| will| would)?(?: first"
    r"| still)? need (?!to (?!know\b))",
    r"\byou(?:'ll| will)? (?:should|have to|need to|must|get to) (?:decide|choose|pick)\b"
    r"|(?:\A|\b(?:i'm|i am|so|and) )(?:stopp|paus|halt)ing here\b",
    r"\b(?:until|unless) (?:i|we) (?:know|have (?:it|that|them|this|an?|the|your)|get|hear|receive)\b"
    r"|(?:\bnot|n't)\b.{0,30}\b(?:mine to|for me to|up to me|my (?:call|decision|place)\b)",
    r"\b(?:an?|one) (?:decision|answer|choice|clarification|confirmation|approval) (?:is|are) (?:needed|required)\b",
    r"\byour (?:[\w-]+ )?(?:input|decision|answer|approval|confirmation|permission|help|consent|go-ahead|choice|reply)"
    r" (?:is|are|will be) (?:still )?(?:needed|required|necessary|missing)\b",
    r"\b(?:up to you|over to you)\b|\b(?:before|until) you (?:confirm|decide|approve|answer|reply|choose|tell|give|say)\b"
    r"|\bonce you(?:'ve| have)? (?:confirm\w*|decid\w*|approv\w*|answer\w*|repl\w*|cho\w*|tell|told|give|given"
    r"|provid\w*|send|share|let me know)\b",
)
_DEMAND = _words(
    r"\A(?:[^,?]{1,80}, )?(?:so |then |but |and )?(?:please |kindly |could you |can you |would you )+"
    r"(?:confirm|provide|choose|pick|select|clarify|specify|advise|decide|approve|answer|tell me|reply|respond"
    r"|share|send|give me|paste|point me"
    r"|indicate|grant|supply|let me know (?:which|whether|how|what|where|when|who|if (?:i|we|this|that"
    r"|it) (?:should|can|may|is)))\b",
    r"\b(?:and|then) (?:let me know|tell me|say|confirm) (?:if|whether) (?:i|we) (?:should|can|may)\b"
    r"|\A(?:just )?(?:let me know|tell me|say) (?:which|whether|how|what|where|when|who|if i (?:should|can|may))\b",
    r"\A(?:please )?(?:just )?(?:send|share|paste|provide|upload|attach)\b.{1,60}\b(?:and|then) i(?:'ll| will| can)\b",
    r"\A(?:please )?(?:just )?let me know (?:if|once|when)\b.{1,80}\b(?:and|then) (?:i'll|i will|i can) (?:start"
    r"|begin|proceed"
    r"|continue|go ahead|implement|get started)\b",
    r"\A(?:please )?(?:type|enter|press|say|write)\b.{1,40}\bto (?:proceed|continue|go on|confirm|approve)\b",
    r"\A(?:please )?(?:just )?(?:let me know|tell me|say) (?:if|whether) (?:that|this|it)(?:'s| is)(?: really"
    r"| still)? (?:ok|okay|fine|acceptable|what you|right|correct|allowed|intended)\b",
    r"\A(?:please )?(?:say|reply|answer|write|type|confirm)\b.{1,60}\b(?:and|then) (?:i|we)(?:'ll| will| can)\b",
    r"\b(?:and|then) (?:confirm|approve|decide|choose)\b(?:.*\b(?:before|so that|so) (?:i|we)\b|\W*\Z)",
    r"\A(?:confirm|choose|pick|reply|answer|respond)\b.{0,60}\b(?:and i|to (?:proceed|continue)|with|which)\b",
)
_HANDS_OVER = _words(
    r"\A(?:so |then |but |and )?(?:please|kindly) (?!note\b|see\b|review\b|find\b|refer\b|keep\b|be\b|let me know\b|feel\b"
    r"|remember\b|ignore\b|do(?:n't| not)\b|check\b|take a look\b|try\b|retry\b|wait\b|stand\b|visit\b|contact\b"
    r"|report\b)\w+",
    r"\A(?:please )?(?:just )?(?:let me know|tell me|ping me|say) (?:if|once|when|after|as soon as)\b.{1,80}\b(?:and|then"
    r"|so) i(?:'ll| will| can)\b",
    r"\A(?:so |unfortunately,? )?i(?:'m| am)? (?:can't|cannot|can not|unable to|not able to) (?:proceed|continue"
    r"|go on|start|begin)\b",
    r"\b(?:let me know|tell me|ping me) (?:once|when|after|as soon as) (?:you|it|that|this)\b",
    r"\b(?:someone|a human|a person|an? (?:admin\w*|owner|maintainer))\b.{0,40} (?:has to|have to|must"
    r"|needs? to) (?!know\b)",
    r"\b(?:rerun|re-run|restart|resume) me\b|\b(?:run|start|restart|call) me again\b|\bnothing (?:else |more )?i can\b",
    r"\bi (?:don't|do not) have (?:enough|sufficient|the (?:necessary|required|needed))\b"
    r"|\b(?:i'd|i would) (?:first )?need (?!to\b)",
    r"\A(?:once|after|as soon as) you(?:'ve|'re| have| are)\b.{1,60}\b(?:i|we)(?:'ll| will| can)\b",
    r"\A(?!(?:i|we|it|the|this|that|if|when|there|then|next|so|now|first)\b)[a-z]+ (?:it|me|the|an?|some|your|this|them)\b"
    r".{0,80}\b(?:and|then) i(?:'ll| will| can)\b",
    r"\A(?:\w+, )?(?:i|we)(?: still| just| first| really| now|'ll| will|'d| would)* need (?:the|an?|some|your|more)\b"
    r"(?! (?:moment|minute|bit|while|time|few)\b)(?!.{1,60}\bto (?:finish|end|complete|pass|run|start)\b)",
    r"\b(?:appreciate|grateful for) your (?:guidance|input|decision|answer|direction)\b",
    r"\b(?:i'm|i am|we're|we are) missing (?:the|an?|one|some)\b"
    r"|\b(?:information|input|clarification|confirmation|approval|authentication|login)(?: is)? (?:needed|required)\b",
    r"\b(?:and|then) (?:tell me|let me know|say so)\b.{0,20}\b(?:when|once)\b",
    r"\bneed (?:a human|a person|someone|somebody)\b",
    r"\A(?:unfortunately,? )?(?:i'm|i am|we're|we are) blocked\b(?! by)",
    r"\A(?:i )?(?:can't|cannot) (?:go (?:on|any further|further)|continue|proceed)\b",
)
"""What the user has to do first, unless the work is done."""
_OFFER = _words(
    r"\A(?:how|what) about\b",
    r"\b(?:would|do|did) you (?:like|want|prefer|need|wish)(?: for)?(?: me| us)?\b|\b(?:want|need) me to\b"
    r"|\bshall (?:i|we)\b"
    r"|\b(?:should|can|could|may|might) (?:i|we)\b|\bis there\b|\bare there\b|\bok(?:ay)? (?:to|if|for me)\b"
    r"|\bready (?:to|for)\b"
    r"|\b(?:would|will|can|could) you\b|\bhow (?:would|do) you (?:like|want) (?:me )?to (?:proceed|continue"
    r"|go)\b|\bif you(?:'d| would)? (?:like|want)\b",
)
_COURTESY = _words(
    r"\b(?:any|some)thing (?:else|more|further)\b|\bany(?: other| further| more)? (?:questions?|changes"
    r"|tasks?|requests?|work|issues|ideas|requirements|feedback|concerns|thoughts|comments)\b",
    r"\b(?:let me know|feel free|reach out|just ask|happy to|glad to|hope (?:this|that)|thanks|thank you|cheers"
    r"|good luck|enjoy)\b",
    r"\bwhat do you think\b|\b(?:make|makes) sense\b|\bsounds? (?:good|right|ok)|\blooks? (?:good|right|ok)\b"
    r"|\bhow does (?:that|this|it) (?:look|sound)\b"
    r"|\bdoes (?:that|this|it) (?:work|help|look|sound|answer|match|fit|meet)\b",
    r"\b(?:next|afterwards?|follow-?ups?|later|tackle|curious|wonder|interest\w*|isn't it|right)\b(?:\W|$)",
)
_PLAIN_COURTESY = _words(
    r"\A(?:please )?(?:let me know|feel free|reach out|just ask|thanks|thank you|cheers|happy to|i'm happy"
    r"|glad to|i can then|i'd be happy)\b",
    r"\A(?:please )?(?:advise|confirm|reply|answer|respond|specify|clarify)\W*\Z",
    r"\A(?:that|this|it|the answer) (?:decides|determines|affects|changes|tells|matters)\b",
    r"\A(?:i'll|i will|i can|i'd|then i|and i|once|as soon as|after|when you|if (?:so|yes|not|you|there (?:is|are)"
    r"|it (?:is|does)|that's|this is)|either way"
    r"|both (?:work|are (?:fine|ok|good|possible|valid|equally))|my (?:recommendation|preference|suggestion|default)"
    r"|i (?:recommend|suggest|prefer|lean|would)|i'm leaning|recommend|in the meantime|meanwhile|nothing (?:has"
    r"|was)|no (?:files|changes)|i (?:have|did)(?:n't| not))\b",
)
_ANSWERS_ITSELF = _words(
    r"\b(?:i|we)(?:'m|'ve|'ll| am| have| will|'re| are)?(?: now| just| also| then)? (?!need|can't|cannot|couldn't"
    r"|could not|haven't|have not|don't|didn't|am not|'m not|not\b|want|see\b|wasn't|won't|was\b|ask"
    r"|like\b|prefer|rather\b|lean|unable|blocked|stuck|paus|stop|halt|wait|hold|on hold"
    r"|search|look|check|tried|found|read|notic|compar|know|understand|have\b|had\b|no\b|would\b)\w+",
    r"\b(?:continuing|proceeding|moving on|going with|so the answer|the answer is)\b"
    r"|\A(?:yes|no|none|probably|likely|possibly|because)\b",
)
_TO_THE_USER = _words(
    r"\b(?:you|your)\b|\bwhich (?:of|one)\b|\b(?:should|shall|may|can|could|must|do) (?:i|we)\b"
    r"|\b(?:ok|okay|fine|safe|right|correct|expected|desired|intended|preferred|allowed|acceptable)\b"
    r"|\b(?:is|are|does|do|will|would|should|shall|must|may|can)\b.{1,80}(?:,? or\b|\bsupposed to\b|\bmeant to\b"
    r"|\bintended\b)"
)
_NO_HURRY = _words(
    r"\bwhen(?:ever)? you (?:get|have|find|can)(?: a| the| some)?(?: chance| time| moment| minute|\W*\Z)"
    r"|\bafter (?:the |you )?(?:rollout|roll-out|deploy\w*|releas\w*|merg\w*)\b|\bat your convenience\b"
    r"|\bif you have (?:a |the |some )?(?:time|moment|minute|chance)\b"
)
_GOES_ON = _words(
    r"\b(?:i'll|i will|i'm going to|i am going to|i've|i have|i) (?:go|went|gone|proceed(?:ed)?|continue[d]?"
    r"|assume[d]?|default(?:ed)?|use[d]?|pick(?:ed)?|cho[os]se[n]?|chose|"
    r"start(?:ed)?|move[d]?)(?: ahead| on| forward| with| to|\b).{0,80}\b(?:unless|otherwise|for now"
    r"|in the meantime|by default|if i don't|if you don't|without)\b",
    r"\b(?:unless you|if i don't hear|if you don't (?:answer|reply)|otherwise i(?:'ll| will)|in the meantime i"
    r"|for now i(?:'ve| have|'ll| will)? (?:assume|use|went|go|default|chose|pick))",
)
_EXTRA = _words(
    r"\b(?:also|as well|additionally|next|feel free)\b|\b(?:any|some)thing (?:else|more|further)\b",
    r"\b(?:separate|another|follow-up|different) (?:ticket|issue|pr|pull request|commit|task|change)\b",
    r"\b(?:commit|push)(?:\?| (?:it|this|that|these|those|them|the|my|all|now|and)\b)|\b(?:open|create"
    r"|make) (?:a |the )?(?:pr|pull request)\b",
)
"""What no work waits for: more of it, and handing it over, which guard does without being asked."""
_PERMISSION = _words(
    r"\b(?:should|shall|may|can) (?:i|we) (?:really )?go through with\b|\bdo you (?:approve|consent|authori[sz]e)\b"
)
_PROMPT = _words(r"[(\[]\w+ ?/ ?\w+[)\]]\?\Z")
_ALTERNATIVES = _words(r"\bor\b")
_ALTERNATIVE = _words(
    r"\b(?:only|just|rather|instead)\b.*\bor\b|,.*\bor\b|\bor (?:stop|wait|leave|ignore|keep|skip|abort|discard)\b"
)
_MORE_WORK = _words(r"\b(?:next|else|more|also|further)\b")
_ASKS_FOR_A_FACT = _words(
    r"(?:\A|[,;:—-] ?|\b(?:and|so|but|then) )(?:which|what|where|who|whose|to wh\w+)\b"
    r"|(?:\A|[,;:—-] ?)how (?:does|do|is|are|many|much|long|often)\b"
)
_ADDRESSED = _words(
    r"\A(?:\w+, )?(?:would you |do you )?mind \w+ing\b",
    r"\b(?:you|your|i|we|me|should|shall|user)\b|\bor\b|\b(?:ok(?:ay)?|ready|safe|fine|allowed) to\b"
    r"|[;,—-] ?(?:which|what|where|who)\b",
    r"\A(?:(?:is )?(?:that|this|it) )?(?:ok|okay|alright|all right|fine|agreed|right)\W*\Z",
    r"\A\w+ (?:anyway|regardless)\?\Z",
    r"\A(?:proceed|continue|go ahead|approved?|agreed?|confirm(?:ed)?)\b|\A\w+ (?:it|them|this|that|these"
    r"|those)(?: now| anyway)?\?\Z",
    r"\A(?:and |so |but |first, |also, )?(?:which|what|where|who|whose|when|how|is|are|was|does|do|did|has|have"
    r"|can|may|must|will|would)\b",
)
_IDLE = _words(
    r"\A(?:why|who knew|who(?: woul|')d have|(?:is|was|are) there anything (?!else)|guess|remember|what (?:went wrong"
    r"|happened|changed|is this|does (?:this|it|that) (?:do"
    r"|mean))|how (?:it works|does (?:it|this) work)|what's (?:new|next))\b",
    r"\A(?:do you )?(?:need|want|is there) (?:any|some)thing else\b(?!.*\bbefore\b)",
    r"\A(?:anything\b|(?:do you |would you )?(?:want|like|care for|fancy) (?:a|an|some|any|more"
    r"|to see)\b)(?!.*(?:\bor\b|\bbefore\b))",
    r"\A(?:would|could|might) (?:\w+ ){1,3}(?:help|be (?:useful|helpful|nice))\W*\Z|\A(?:feels?|sounds?"
    r"|looks?) (?:right|good|ok\w*)\W*\Z",
    r"\Amay i suggest\b",
)
_REPORTED = _words(
    r"\A(?!.*\b(?:i|me|we|to|you)\b[^:]*:)[^:]*\b(?:answers?|asks?|asked|says?|reads?|explains?|prints?|shows?|displays?)\b"
    r"[^:]{0,20}: "
)
"""Somebody else's question, told after a colon."""
_WAITS_FOR_ITSELF = _words(
    r"\bin the background\b|\bstill (?:running|building|going)\b|\bto (?:finish|complete|end)\b[^.]*\b(?:run|build|test|job)"
)
_TO_A_PERSON = _words(r"\b(?:you|your|someone|somebody|human|person|confirm\w*|approv\w*)\b")
_NOT_FOUND = _words(
    r"\b(?:can't|cannot|couldn't|could not|can not|didn't|did not) (?:find|see|tell|locate|get|determine|figure)\b"
    r"|\b(?:leaves?|left) (?:it|this|that) open\b|\b(?:does|do|did)(?:n't| not) (?:say|tell|mention|specify|define|name)\b"
    r"|\b(?:no|without) (?:mention|hint|trace|word|record)\b|\bnowhere\b|\b(?:isn't|is not|not) (?:in|defined|documented|listed"
    r"|mentioned|stated|specified)\b|\b(?:is|are) silent\b"
)
"""Behind a question for a fact: where the agent looked for it in vain."""
_NEVER_UNLESS = _words(
    r"\b(?:won't|will not|can't|cannot|can not|not going to)\b[^.!?]*\bunless you\b"
)
_LATER = _words(
    r"\b(?:next|future|follow-?ups?|later|ideas|optional|out of scope|nice to have|food for thought|consider)\b"
)
_ASKING = _words(r"\b(?:question|clarif|need|decide|decision|answer|confirm|unclear|know|block)")


def find_question(message: str) -> str | None:
    """Return the words of the question that the message stops for; None if the agent can go on without an answer."""
    text = _own_text(message)
    lines = [line for line in text.splitlines() if line.strip()]
    items: list[str] = []
    while lines and len(items) < 15 and _ITEM.match(lines[-1]):
        items.insert(0, lines.pop())
    # A report of finished work stands against what the agent could not do before it, not against what still stops it.
    done, unknown = _last_place(_DONE, text), _last_place(_OPEN, text)
    is_done = done > unknown
    asked = _asked_in_items(items, lines, is_done)
    if asked:
        return asked
    sentences = _split("\n".join(lines[-8:]))
    found = _asked_at_end(sentences, is_done, has_choices=bool(items))
    if (
        not found
        and not is_done
        and unknown >= 0
        and sentences[-1:]
        and _is_about_the_task(sentences[-1])
    ):
        found = sentences[-1]
    end = _NEVER_UNLESS.sub("", " ".join(sentences[-_LAST_SENTENCES:]))
    if found and _GOES_ON.search(end):
        return None
    return found


def is_offer(message: str, question: str) -> bool:
    """Tell whether a question that a tool asked only offers more, beside a message that reports finished work."""
    text = _own_text(message)
    is_done = _last_place(_DONE, text) > _last_place(_OPEN, text)
    asked = _split(_own_text(question))
    return is_done and bool(asked) and not any(_needs_answer(one, is_done) for one in asked)


def _last_place(pattern: re.Pattern[str], text: str) -> int:
    return max((found.start() for found in pattern.finditer(text)), default=-1)


def _own_text(message: str) -> str:
    text = message.replace("’", "'").replace("\r", "")[-_TAIL:]
    text = _QUOTED.sub("", _FENCE.sub("\n", text))
    return _INLINE.sub(lambda found: found[0].replace("?", " ").replace("\n", " "), text)


def _split(text: str) -> list[str]:
    lines = _CHOICES.sub(r" \1?", text).splitlines()
    found = [sentence for line in lines for sentence in _SENTENCES.split(line)]
    return [bare for sentence in found if (bare := _MARK.sub("", sentence).strip())]


def _asked_in_items(items: list[str], lines: list[str], is_done: bool) -> str | None:
    # A list of questions at the end, or a last item that is one.
    asked = [_MARK.sub("", item).strip() for item in items]
    asked = [item for item in asked if item.endswith(("?", "？"))]
    head = lines[-1] if lines else ""
    if not asked or is_done or _LATER.search(head):
        return None
    if len(asked) == len(items) or _ASKING.search(head):
        return " ".join(asked)
    return None


def _asked_at_end(sentences: list[str], is_done: bool, has_choices: bool) -> str | None:
    # Behind the question only courtesies and what the agent will do with the answer may stand.
    for sentence in reversed(sentences[-_LAST_SENTENCES:]):
        is_question = sentence.endswith(("?", "？"))
        if is_question and not is_done and (several := _short_questions(sentences)):
            return several
        if is_question:
            return sentence if _needs_answer(sentence, is_done) else None
        if _says_it_stops(sentence, is_done) or (has_choices and _announces_choice(sentence)):
            return _with_question_before(sentence, sentences)
        has_choices = False
        if not _PLAIN_COURTESY.search(sentence):
            return None if is_done else _asked_with_reasons(sentences[-_LAST_SENTENCES:])
    return None


def _short_questions(sentences: list[str]) -> str | None:
    # Choices, each with its own question mark: "Startup? Requests?"
    end = [*takewhile(_is_short_question, reversed(sentences))][::-1]
    before = sentences[: len(sentences) - len(end)][-1:]
    if end and before and _says_it_stops(before[0], is_done=False):
        return " ".join([*before, *end])
    return " ".join(end) if len(end) > 1 else None


def _is_short_question(sentence: str) -> bool:
    return sentence.endswith("?") and len(sentence.split()) <= 3 and not _IDLE.search(sentence)


def _asked_with_reasons(sentences: list[str]) -> str | None:
    # A question to the user, or a stop, behind which the message only says why.
    for number in reversed(range(len(sentences))):
        asked, rest = sentences[number], sentences[number + 1 :]
        if rest and asked.endswith(("?", "？")) and _is_short_answer(rest[0]):
            return None
        is_question = asked.endswith(("?", "？"))
        if not is_question and not _says_it_stops(asked, is_done=False):
            continue
        if any(_ANSWERS_ITSELF.search(sentence) for sentence in rest):
            return None
        if is_question:
            needed = any(words.search(asked) for words in (_TO_THE_USER, _OPEN, _ALTERNATIVES))
            if _ASKS_FOR_A_FACT.search(asked) and any(_NOT_FOUND.search(one) for one in rest):
                needed = True
            is_asked = needed and _needs_answer(asked, is_done=False)
            return asked if is_asked else None
        return _with_question_before(asked, sentences)
    return None


def _is_short_answer(sentence: str) -> bool:
    is_short = len(sentence.split()) <= 3 and sentence.endswith((".", "!"))
    others = (_PLAIN_COURTESY, _ALTERNATIVES, _STOPS, _DEMAND, _HANDS_OVER)
    return is_short and not any(words.search(sentence) for words in others)


def _with_question_before(sentence: str, sentences: list[str]) -> str:
    before = sentences[: sentences.index(sentence)][-1:]
    asked = [one for one in before if one.endswith(("?", "？"))]
    return " ".join([*asked, sentence])


def _announces_choice(sentence: str) -> bool:
    return sentence.endswith(":") and bool(
        re.search(
            r"\b(?:choose|pick|select|decide|which|prefer|confirm)\b", sentence, re.IGNORECASE
        )
    )


def _says_it_stops(sentence: str, is_done: bool) -> bool:
    if _WAITS_FOR_ITSELF.search(sentence) and not _TO_A_PERSON.search(sentence):
        return False
    if is_done and re.search(
        r"\b(?:review|feedback|merge|your call|up to you)\b", sentence, re.IGNORECASE
    ):
        return False
    if _STOPS.search(sentence):
        return not re.search(r"\b(?:if|should) you(?:'d)? (?:need|want|like)\b", sentence, re.I)
    if is_done:
        return False
    # A demand may stand behind a colon or a dash.
    parts = (sentence, re.split(r"[:—–] ", sentence)[-1])
    if any(_HANDS_OVER.search(part) for part in parts):
        return True
    return any(_DEMAND.search(part) for part in parts) and not _NO_HURRY.search(sentence)


def _needs_answer(sentence: str, is_done: bool) -> bool:
    if _PERMISSION.search(sentence):
        return True
    if any(words.search(sentence) for words in (_IDLE, _NO_HURRY, _REPORTED)):
        return False
    if is_done:
        is_more = any(words.search(sentence) for words in (_OFFER, _COURTESY, _EXTRA))
        asks = (_ALTERNATIVES, _ASKS_FOR_A_FACT, _PROMPT)
        return not is_more and any(words.search(sentence) for words in asks)
    if _EXTRA.search(sentence) and _OFFER.search(sentence):
        asks_fact = _ASKS_FOR_A_FACT.search(sentence) and not _MORE_WORK.search(sentence)
        return bool(_ALTERNATIVE.search(sentence) or asks_fact)
    return not _EXTRA.match(sentence) and bool(
        _ADDRESSED.search(sentence) or _PROMPT.search(sentence) or _COURTESY.search(sentence)
    )


def _is_about_the_task(sentence: str) -> bool:
    # Behind what the agent says it does not know, any question asks for it.
    if not sentence.endswith(("?", "？")):
        return False
    return not any(words.search(sentence) for words in (_IDLE, _NO_HURRY, _COURTESY, _OFFER))
