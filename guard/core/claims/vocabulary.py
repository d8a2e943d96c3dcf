"""List the words by which a sentence is read: changes, mentions, denials, plans."""

from typing import Literal

Kind = Literal["changed", "begun", "named", "denied", "supposed", "turn", "aside"]


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


CHANGED = word_set("""
    created creating added adding wrote written writing modified modifying updated updating changed changing edited editing
    fixed fixing implemented implementing deleted deleting removed removing refactored refactoring renamed renaming moved
    moving rewrote rewritten rewriting extended extending extracted extracting split splitting replaced replacing introduced
    introducing patched patching corrected correcting converted converting migrated migrating ported porting adjusted
    adjusting generated generating formatted reformatted reworked reworking improved improving simplified simplifying cleaned
    cleaning merged merging touched touching adapted adapting bumped bumping documented documenting expanded expanding
    hardened hardening appended appending inserted inserting dropped dropping restructured restructuring optimized optimised
    optimizing tightened rewired wired wiring registered scaffolded configured configuring repaired repairing resolved
    resolving enhanced enhancing polished completed finished overhauled modernized modernised upgraded upgrading inlined
    consolidated deduplicated parametrized parametrised typed annotated translated localized refined set put placed made
    built finalized finalised altered revised amended stubbed landed prepared increased decreased lowered
    enabled disabled shortened stripped switched swapped went gained gains receives received
    """)
BEGUN = word_set("""
    create add write modify update change edit fix implement delete remove refactor rename move rewrite extend extract split
    replace introduce patch correct convert migrate port adjust generate format rework improve simplify clean merge touch adapt
    bump document expand harden append insert drop restructure optimize tighten wire register scaffold configure new
    multiedit resolve enhance upgrade
    creates adds writes modifies updates changes edits fixes implements deletes removes refactors renames moves rewrites
    """)
"""Verb forms that claim a change only at the start of a statement, as in the title of a commit."""
NOTED = CHANGED | word_set(
    """
    memoized memoised cached wrapped escaped validated hoisted batched debounced throttled guarded exposed exported sanitized
    sanitised normalized normalised parallelized vectorized indexed streamed encrypted new
    """
)
"""Words that claim a change right after a path and a colon, or in brackets."""
MOVES = word_set(
    "moved moving renamed renaming extracted extracting split splitting merged merging ported migrated"
)
NAMED = word_set("""
    read reads reading reviewed reviewing analysed analyzed analysing analyzing analyse analyze examined examining inspected
    inspecting checked checking looked looking look studied investigated investigating traced tracing searched scanning
    scanned found identified identify saw see noticed ran run running rerun executed executing tested verified confirmed uses
    use used call calls called imports imported loads loaded references refers contains covers covering covered depends
    depending based according following followed follows via compare compared match matches matching mirrors mirroring mirror
    mentioned described describes exists exist exports wraps handles defines defined lives consumed consumes caused raises
    raised fails failing failed passes pass passed passing started listed explored mapped understood audited observed
    reproduced measured profiled cites cite relies points pointing originates comes lists holds owns documents explains
    which that so where whose because since when while as unless consult consulted inherits inherited needs lacks lacked
    expects expected reported visited opened cross-checked grepped fetched
    """)
DENIED = word_set("""
    not no never without nothing none nor neither cannot can't unable couldn't didn't doesn't don't haven't hasn't hadn't
    wasn't weren't isn't aren't won't avoid avoided avoids skip skipped skipping rather instead zero
    """)
UNTOUCHED = word_set("unchanged untouched unmodified alone intact as-is unaffected off-limits")
SUPPOSED = word_set("""
    will would should could can may might must need want wants plan plans planned planning going
    todo later consider considered considering
    recommend recommended recommends suggest suggested suggests please if next remaining remains propose proposed requires
    require required would've i'll we'll future optional optionally ideally follow-up followup follow-ups won't tomorrow
    """)
SUBJECTS = word_set("i i've we we've")
TURNS = word_set("but however although though whereas")
ASIDE = word_set("for of from like per using against than about with similar unlike regarding")
BACK = word_set("in into to at inside under within on across")
ONCE = word_set("that last previous earlier same old")
OCCASIONS = word_set(
    "release version commit pr refactor refactoring migration sprint change branch"
)
"""`In that release`: another author's change."""
AUXILIARY = word_set(
    "was were is are be been being has have had got now also then all both just newly"
)
_KINDS: tuple[tuple[frozenset[str], Kind], ...] = (
    (TURNS, "turn"),
    (DENIED, "denied"),
    (SUPPOSED, "supposed"),
    (ASIDE, "aside"),
    (NAMED, "named"),
    (CHANGED, "changed"),
    (BEGUN, "begun"),
)
KINDS: dict[str, tuple[Kind, ...]] = {
    word: tuple(kind for words, kind in _KINDS if word in words)
    for word in frozenset().union(*(words for words, _ in _KINDS))
}
