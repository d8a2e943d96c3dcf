"""Find in an agent's last message the question without whose answer it cannot go on.

What decides is where the message stops. It stops for an input if its end asks for a choice, a fact or a permission, or says
that the agent waits for one. An offer after a report of finished work, a courtesy, a question that the message answers
itself, and whatever is quoted are none. A false question stops a run, and a missed one costs only a probe.
"""

import re

_TAIL = 4000
_LAST_SENTENCES = 4
_FENCE = re.compile(r"^[ \t]*(```|~~~).*?(?:^[ \t]*\1[^\n]*$|\Z)", re.MULTILINE | re.DOTALL)
_QUOTED = re.compile(
    r"^[ \t]*(?:>|\|).*$|^(?: {4}|\t)(?![ \t]*(?:[-*•]|\d{1,2}[.)])\s).*$", re.MULTILINE
)
_INLINE = re.compile(r"`[^`\n]+`|\"[^\"\n]{1,300}\"|“[^”\n]{1,300}”|(?<![\w])'[^'\n]{1,300}'(?!\w)")
_ITEM = re.compile(r"\s*(?:[-*•]|\(?\d{1,2}[.)]|\(?[a-zA-Z][.)]|option \w[:)])\s*\S", re.IGNORECASE)
_MARK = re.compile(r"\A(?:[#>*_\s-]|\d{1,2}[.)]\s|\(?[a-zA-Z]\)\s)+|[*_\s)\]]+\Z")
_SENTENCES = re.compile(r"(?<=[.!?？])[*_)\]]*\s+|(?<=？)")


def _words(*patterns: str) -> re.Pattern[str]:
    return re.compile("|".join(patterns), re.IGNORECASE)


_MADE = (
    r"(?:implemented|finished|completed|added|fixed|updated|refactored|removed|created|renamed|written|wrote"
    r"|migrated|resolved"
    r"|committed|pushed|merged|replaced|converted|moved|extracted|documented|deleted|upgraded|changed|made"
    r"|built|set up|rewrote|rewritten)"
)
_DONE = _words(
    rf"\b(?:i|we)(?:'ve| have)?(?: now| just| also| successfully)* {_MADE}\b",
    rf"(?:^|[.!:,\n]\s*|[-*•]\s+|\b(?:but|and|so) ){_MADE}\b|\ball green\b",
    r"(?<!not )(?<!n't )\b(?:done|finished|complete)\b\s*[.!:,;—-]",
    r"(?<!\bi )(?<!\bwe )\b(?:is|are|was|were|has been|have been)(?: now| all| both| fully)* (?:done|finished|complete"
    r"|completed|fixed|in place|implemented"
    r"|merged|committed|pushed|ready|green|working|migrated|updated|added|removed)\b",
    r"\b(?:all|\d+)(?: of)?(?: the)?(?: \d+)?(?: unit)? (?:tests?|checks) (?:now |are |still )*(?:pass\w*|green)\b",
    r"\btests? (?:now |all |are )*(?:pass|passed|passing|green)\b|\beverything (?:works|passes|is)\b"
    r"|\bnow (?:works|passes|supports?)\b",
)
_OPEN = _words(
    r"\b(?:until|unless|once) you (?:confirm|decide|approve|answer|reply|choose|tell|give|say)\b",
    r"\b(?:before|until|unless|once) (?:i|we|making|doing|going|touching|starting|proceeding)\b",
    r"\b(?:i|we)(?: still)? (?:can't|cannot|can not|couldn't|could not|won't|am unable|was unable|haven't"
    r"|have not|didn't|did not)\b",
    r"\b(?:blocked|stuck|paused|ambiguous|unclear|unsure|undecided)\b|\bnot (?:sure|certain|clear|specified|yet)\b",
    r"\bno changes (?:were|have been|yet)|\bnothing (?:was|has been) (?:changed|touched)|\bdo(?:es)?n't (?:say"
    r"|specify|mention|tell)\b",
    r"\b(?:two|three|several|a few|multiple|both) (?:ways|options|approaches|choices|possibilities|candidates"
    r"|interpretations)\b",
    r"\b(?:needs?|requires?) (?:to know|your|you to|a decision|an answer|clarification|input|access|credentials)\b",
    r"\b(?:is|are) missing\b|\b(?:i|we) (?:stopped|paused|left) (?:here|there|it|before|at)\b|\bstopp(?:ed|ing) here\b",
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
    r"(?: \w+)? (?:go-ahead|go ahead|approval|confirmation|decision|input|answer|permission|sign-off|okay|ok"
    r"|call|choice|clarification"
    r"|guidance|direction|instructions|consent|credentials?|password|api key|access token|token|answers)\b",
    r"\b(?:i|we)(?: still| first| really| do)? need (?:you to|to know|from you)\b"
    r"|\b(?:i|we)(?:'ll| will)?(?: still| first)? need (?:\S+ ){1,12}?(?:to|before i can|so (?:that )?i can)"
    r" (?:go on|proceed|continue|start|begin|finish|go further)\b",
    r"\bif you (?:can|could)?\b.{1,80}\b(?:i'll|i will|i can|then i) (?:carry on|continue|proceed|go on|finish|resume"
    r"|start|begin)\b",
    r"\b(?:when|if|as soon as) you (?:give me|say|confirm|approve|tell me)\b",
    r"\b(?:it's|it is|that's|this is|the (?:choice|decision) is) (?:your (?:call|choice|decision)|up to you"
    r"|yours)\b|\A(?:so )?your (?:call|choice|decision)\b",
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
    r"\A(?:just )?(?:let me know|tell me|say) (?:which|whether|how|what|where|when|who|if i (?:should|can|may))\b",
    r"\A(?:please )?(?:just )?(?:send|share|paste|provide|upload|attach)\b.{1,60}\b(?:and|then) i(?:'ll| will| can)\b",
    r"\A(?:please )?(?:just )?let me know (?:if|once|when)\b.{1,80}\b(?:and|then) (?:i'll|i will|i can) (?:start|begin|proceed"
    r"|continue|go ahead|implement|get started)\b",
    r"\A(?:confirm|choose|pick|reply|answer|respond)\b.{0,60}\b(?:and i|to (?:proceed|continue)|with|which)\b",
)
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
    r"\b(?:next|afterwards?|follow-?ups?|later|tackle|curious|wonder|isn't it|right)\b(?:\W|$)",
)
_PLAIN_COURTESY = _words(
    r"\A(?:please )?(?:let me know|feel free|reach out|just ask|thanks|thank you|cheers|happy to|i'm happy"
    r"|glad to|i can then|i'd be happy)\b",
    r"\A(?:please )?(?:advise|confirm|reply|answer|respond)\W*\Z",
    r"\A(?:that|this|it|the answer) (?:decides|determines|affects|changes|tells|matters)\b",
    r"\A(?:i'll|i will|i can|i'd|then i|and i|once|as soon as|after|when you|if (?:so|yes|not|you)|either way"
    r"|both (?:work|are (?:fine|ok|good|possible|valid|equally))|my (?:recommendation|preference|suggestion|default)"
    r"|i (?:recommend|suggest|prefer|lean|would)|i'm leaning|recommend|in the meantime|meanwhile|nothing (?:has"
    r"|was)|no (?:files|changes)|i (?:have|did)(?:n't| not))\b",
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
    r"\b(?:commit|push)(?:\?| (?:it|this|that|these|those|them|the|my|all|now|and)\b)|\b(?:open|create"
    r"|make) (?:a |the )?(?:pr|pull request)\b",
)
"""What no work waits for: more of it, and handing it over, which guard does without being asked."""
_ADDRESSED = _words(
    r"\b(?:you|your|i|we|me|should|shall|user)\b|\bor\b|\b(?:ok(?:ay)?|ready|safe|fine|allowed) to\b"
    r"|[;,—-] ?(?:which|what|where|who)\b",
    r"\A(?:and |so |but |first, |also, )?(?:which|what|where|who|whose|when|how|is|are|was|does|do|did|has|have"
    r"|can|may|must|will|would)\b",
)
_IDLE = _words(
    r"\A(?:why|who knew|guess|remember|what (?:went wrong|happened|changed|is this|does (?:this|it|that) (?:do"
    r"|mean))|how (?:it works|does (?:it|this) work)|what's (?:new|next))\b"
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
    is_done = _last_place(_DONE, text) > _last_place(_OPEN, text)
    asked = _asked_in_items(items, lines, is_done)
    if asked:
        return asked
    sentences = _split("\n".join(lines[-8:]))
    found = _asked_at_end(sentences, is_done, has_choices=bool(items))
    if found and _GOES_ON.search(" ".join(sentences[-_LAST_SENTENCES:])):
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
    found = [sentence for line in text.splitlines() for sentence in _SENTENCES.split(line)]
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
        if is_question:
            return sentence if _needs_answer(sentence, is_done) else None
        if _says_it_stops(sentence, is_done) or (has_choices and _announces_choice(sentence)):
            return _with_question_before(sentence, sentences)
        has_choices = False
        if not _PLAIN_COURTESY.search(sentence):
            return None
    return None


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
    if is_done and re.search(r"\b(?:review|feedback|merge)\b", sentence, re.IGNORECASE):
        return False
    if _STOPS.search(sentence):
        return not re.search(r"\b(?:if|should) you(?:'d)? (?:need|want|like)\b", sentence, re.I)
    if not _DEMAND.search(sentence):
        return False
    return not (is_done and _COURTESY.search(sentence))


def _needs_answer(sentence: str, is_done: bool) -> bool:
    if _IDLE.search(sentence):
        return False
    if is_done:
        is_more = any(words.search(sentence) for words in (_OFFER, _COURTESY, _EXTRA))
        return not is_more and bool(_ADDRESSED.search(sentence))
    if _EXTRA.search(sentence) and _OFFER.search(sentence):
        return False
    return not _EXTRA.match(sentence) and bool(
        _ADDRESSED.search(sentence) or _COURTESY.search(sentence)
    )
