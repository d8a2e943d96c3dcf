"""A world in memory in which agents' sessions end in every way, with the truth known, for the real decision code to judge.

Git, processes and the clock are made up; counting, classifying, reading answers, judging, the driver of the check, the
breaker and the loop are the product's own. The truth of a session is written down where the session is made up, before
anything judges it, and nothing that judges can see it.

Not in it, because no evidence could tell: an outage in which the session ended well and every probe hangs without a word;
and a helper that is silent for minutes while its session cannot be asked, which looks like a server that was left running.
An agent that does nothing, says that there was nothing to do, and has no task file, is in it, and counted apart.
"""
