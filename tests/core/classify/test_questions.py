"""Labelled last messages: which of them stop for an answer, and which only look like it."""

import pytest

from guard.core.classify import Classification, classify
from guard.core.classify.question import find_question
from tests.core.classify import closing_messages
from tests.streams import NOW, SESSION, init, jsonl, result, says, uses

STOPS = (
    "The issue does not say which database to use. Should I use PostgreSQL or SQLite? Please let me know.",
    "I found two databases in the config. Is it production or staging?",
    "The migration would drop the users table. I'll wait for your go-ahead.",
    "I can do this with Redis or in memory. Both are fine technically. Your call.",
    "Two ways.\nWhich one should I take?",
    "I need the API key for the payment service before I can continue. Where can I find it?",
    "I can't proceed without the database password. Please provide it.",
    "Before I make any changes: should the new endpoint be public?",
    "The spec is ambiguous about time zones. Do you want UTC or local time?",
    "There are two options:\n\n1. Rewrite the parser\n2. Patch the lexer\n\nWhich do you prefer?",
    "Which approach should I take?\n\n1. Rewrite the parser\n2. Patch the lexer",
    "Please choose one of these:\n- A: keep the old API\n- B: break it",
    "I looked at the code and have a plan: add a cache, then invalidate on write. Should I proceed?",
    "Here is my plan:\n1. Add a column\n2. Backfill it\n\nDoes this look good to you?",
    "I have not changed anything yet. Shall I start with the backend?",
    "This deletes 14,000 rows in production and cannot be undone. Are you sure you want me to run it?",
    "I'm not sure which of the two `config.yml` files is the right one. Can you tell me?",
    "I'm blocked: the repository needs credentials for the private registry. Please provide a token.",
    "The tests need a running Postgres, and I cannot start one here. How would you like me to proceed?",
    "Please confirm that I may delete the legacy folder.",
    "Let me know which version of Node I should target.",
    "Waiting for your decision on the schema.",
    "I am waiting for your approval to run the migration.",
    "I stopped here because the change would break the public API. Is that acceptable?",
    "What should the default timeout be?",
    "Could you clarify what you mean by *fast mode*?",
    "I need you to log in to the registry first.",
    "The task mentions a design document, but there is none in the repository. Where is it?",
    "Questions before I start:\n1. Which Python version do you target?\n2. Is Windows support needed?",
    "I need clarification:\n- Should errors be logged or raised?\n- Who may call the endpoint?",
    "I have added the model. The controller depends on the auth provider, which is not specified. Is it Okta or Auth0?",
    "The parser is written, but I can't finish the exporter until you decide on the format.",
    "Do you want me to overwrite the existing file, or write to a new one?",
    "Should I keep backward compatibility or drop it? I recommend dropping it. I'll implement it once you confirm.",
    "I could not find the specification. Can you share the link?",
    "Both `main` and `develop` have diverged. Which branch is the base?",
    "It's up to you whether we migrate the data now. I cannot continue until that is decided.",
    "Without your confirmation I won't touch the production cluster. May I go ahead?",
    "**Which license should the package use?**",
    "I would have to force-push to fix the history. OK to proceed?",
    "May I install the missing system packages with sudo?",
    "Tell me which of the three endpoints to remove and I will do it.",
    "Option A is faster, option B is safer. It's your call.",
    "The password for the test account is needed to continue; what is it?",
    "Once you tell me the target region, I'll write the Terraform files.",
    "I haven't written any code yet, since the requirements conflict. Which one wins?",
    "I need the value of STRIPE_KEY to go on.",
    "Ready to start when you give me the go-ahead.",
    "I added the endpoint. However, the spec doesn't say whether deleted users keep sessions. Which do you want?",
    "The migration is not complete. Which of the two tables may I drop?",
    ("I've gone through the codebase and there are **two** places that could own this logic:\n\n- "
    "`src/api/auth.ts`\n- `src/middleware/session.ts`\n\nI don't want to guess here — which one would you like me "
    "to change?"),
    ("I apologize for the confusion. I still don't understand what the expected output is. Could you give me an "
    "example of the input and the result you expect?"),
    ("I've completed steps 1–3 of the plan. Step 4 drops the `legacy_orders` table, which is irreversible, so I've "
    "stopped there. Please confirm that you want me to go ahead."),
    "The `.env` file is not in the repository, and the app refuses to start without `DATABASE_URL`. What value should I use?",
    ("Here's the plan I'd follow:\n\n1. Extract the interface\n2. Move the Stripe code behind it\n3. Add the PayPal "
    "adapter\n\nLet me know if this plan works for you and I'll start implementing."),
    ("I haven't made any edits. The request says \"make it faster\", but it's not clear whether that means start-up "
    "time or throughput. Which of the two matters to you?"),
    ("Before I touch anything: this package is published, so renaming the export is a breaking change. Are you okay "
    "with a major version bump?"),
    ("I need a decision from you on the following:\n\n- **Option A** – keep REST and add a version prefix\n- "
    "**Option B** – move to GraphQL\n\nReply with A or B."),
    ("I'm unable to push: the remote asks for a username and password. I need you to authenticate with `gh auth "
    "login` before I can continue."),
    "Quick question before I continue: should archived projects be included in the export, or only active ones?\n\nThanks!",
    ("Partial progress: the schema is in place and the first two endpoints work. For the third one, the spec "
    "contradicts itself (page 3 says `PUT`, page 7 says `PATCH`). Which is correct?"),
    "Sorry, I can't tell which environment this should be deployed to. Staging or production?",
    ("I found three TODOs that match your description. Which one did you mean?\n\n1. `parser.py:88` – handle "
    "tabs\n2. `lexer.py:12` – unicode\n3. `cli.py:40` – exit codes"),
    ("The test suite takes a licence key that I don't have. If you can share one (or tell me to skip those tests), "
    "I'll carry on."),
    "To proceed I'd need write access to the `infra` repository. Can you grant it?",
    ("The two requirements conflict: #3 asks for optimistic locking, #5 forbids a version column. I've paused until "
    "I hear from you how to resolve this."),
    ("I could fix this by (a) bumping the dependency or (b) vendoring a patch. I'd lean towards (a), but it pulls "
    "in a new license (AGPL). Do you accept that?"),
    ("> The importer should handle the new format\n\nI looked for a sample of the new format and there isn't one in "
    "the repo. Could you attach one?"),
    "Nothing has been changed yet. Would you like me to proceed with deleting the 37 unused files listed above?",
    "This needs a product decision: should a deleted comment still count towards the total? I'll hold off until you tell me.",
    "I've hit a fork in the road. Do we support Python 3.8 or not? That decides whether I can use `match`.",
    "I have everything I need except the webhook secret. Send it over and I'll wire it up.",
    "Done with the analysis; no code was changed. Should I implement option 2?",
    "All tests pass locally, but deploying needs your approval. Shall I deploy to production now?",
    "Tests pass so far. However I can't run the integration tests without Docker. How should I proceed?",
    "It looks like the branch was force-pushed while I was working. Do you want me to keep my version or take theirs?",
    "I'd like to double-check one thing: is `customer_id` supposed to be nullable?",
    "I will need the following to continue:\n- The API base URL\n- A test account",
    "Which one?",
    "I can see the problem, but fixing it means changing the public API. Is that okay with you?",
    ("I looked through the repo and there are two config loaders, `settings.py` and `conf/loader.py`. Both are"
    " imported. Before I touch either: which one is the source of truth?"),
    "The migration will drop the `legacy_users` table (about 41k rows). I've stopped short of running it. Should I go ahead?",
    ("I can't find the API key for Stripe anywhere in the environment. Please set STRIPE_KEY or tell me where it"
    " is stored, and I'll continue."),
    ("Two approaches here:\n\n1. Extend the existing parser\n2. Replace it with tree-sitter\n\nI lean towards 2"
    " but it adds a dependency. Which do you prefer?"),
    "Tests need a running Postgres and I don't have permission to start Docker. How do you want me to proceed?",
    "To be clear on scope: do you want me to fix only the date parsing bug, or also rewrite the timezone handling?",
    "I've got a plan ready (see above). I have not changed any files yet. Do you approve the plan?",
    ("The spec says the endpoint returns 404, the existing tests say 410. I need a decision on which is right"
    " before I implement it."),
    "I have paused here because force-pushing would rewrite shared history. Reply 'yes' to continue.",
    ("Could you share the expected output for the sample in issue #12? Without it I can't tell which rounding mode"
    " is intended."),
    ("Is `user_id` supposed to be globally unique or unique per tenant? The schema doesn't say, and the two need"
    " different indexes."),
    "Awaiting your decision on the licence header before I go on.",
    "Quick question before I start: what Python version should I target? 3.8 is EOL, but your Dockerfile uses it.",
    "I'm not able to complete this without credentials for the staging registry. Can you provide them?",
    ("Happy to do this! First, a couple of clarifications:\n\n- Should the export include archived rows?\n- What"
    " delimiter do you want?\n- Where should the file be written?"),
    ("Everything is prepared for the release of 2.0. I need you to confirm the version bump, since publishing"
    " can't be undone."),
    "I ran into a conflict: main now has its own implementation of `retry()`. Keep mine, keep theirs, or merge the two?",
    "This would delete 132 files from the repository. Are you sure you want that?",
    "I don't know what \"the usual format\" refers to. Can you point me at an example?",
    "The request is ambiguous. Did you mean the `Button` in packages/ui or the one in apps/web?",
    ("I need access to the private submodule `vendor/crypto`; cloning fails with a 403. Let me know once access"
    " has been granted and I'll pick it up from there."),
    ("There are failing tests on main unrelated to this task (7 in test_auth.py). Should I fix those first or"
    " ignore them?\n\nLet me know and I'll get going."),
    "Would you rather I use Redis or in-memory caching? It affects the whole design, so I haven't started.",
    "Done with the analysis; no code written yet. Pick A or B and I'll implement it.",
    "Please run `npm login` on your side — I can't authenticate from here. I'll resume after that.",
    ("I implemented the parser, but the second half of the task depends on the wire format, which isn't"
    " documented. Is the length prefix big-endian or little-endian?"),
    ("The OAuth redirect needs a registered callback URL. What URL should I register? I don't have access to the"
    " Google console."),
    ("I see that the branch `release/4.x` is protected. Pushing requires an admin. Please push it yourself or give"
    " me a token with admin rights."),
    "Do you want strict mode on by default? That would break 14 existing call sites.",
    "I looked for the design file named in the ticket but it isn't in the repo. Please upload it.",
    "Before deleting the S3 bucket I'd like explicit confirmation from you.",
    "I have two questions. First, should deleted users keep their comments? Second, who is allowed to restore them?",
    "The package name `fastlog` is taken on PyPI. What name shall I use instead?",
    ("It looks like someone else is editing the same files right now (mtime changed 10 seconds ago). Should I keep"
    " going or wait?"),
    "I'd need to install system packages with sudo for this. OK to proceed?",
    ("Sorry, I got stuck: every approach requires changing the public API. Which is acceptable to you: a"
    " deprecation cycle or a hard break?"),
    "Here's the plan:\n\n1. Add table\n2. Backfill\n3. Switch reads\n\nPlease confirm and I'll start with step 1.",
    "I don't see any task description in your message. What would you like me to do?",
    "The file TASK.md is empty. What should I work on?",
    "Hello! How can I help you with this repository today?",
    "Unfortunately I can't sign in to the Figma account. Once you've logged in, I can export the assets.",
    "Option A keeps backward compatibility. Option B is cleaner. Let me know which one you want.",
    "This needs a product decision: do free users see the banner or not?",
    ("I wrote a draft of the ADR, but haven't committed it, because the company policy on licences isn't clear to"
    " me. Are GPL dependencies allowed?"),
    ("Your instructions say to use yarn, the lockfile is pnpm's. Which of the two is right? I don't want to guess,"
    " as CI depends on it."),
    "Heads-up: this will cost about $40 in API calls. Do I have your OK?",
    ("I've compared the two lockfiles and they disagree on the React version (17 in apps/admin, 18 in "
    "apps/shop). I'd rather not pick for you. Let me know which one to align on."),
    ("The ticket just says \"improve search\". That's too open for me to act on — what would a good result look "
    "like for you?"),
    ("I'm going to need the staging kubeconfig. Could you drop it at ~/.kube/staging.yaml? Then I'll rerun the "
    "deployment script."),
    ("Nothing committed so far. Two of the acceptance criteria exclude each other: AC2 wants soft deletes, AC5 "
    "wants the rows gone. Which takes priority?"),
    "Would it be alright if I rewrote the module in TypeScript? I won't start before I hear from you.",
    "Hi! I read through the repository. Tell me what you'd like me to build.",
    "Which of these did you have in mind: the CSV importer, the XML importer or the JSON one?",
    "I can only continue after someone approves the pull request #88, because my branch is stacked on it.",
    ("The `rm -rf build/ dist/ data/` in your instructions also removes 3 GB of training data in data/. Should "
    "I leave out data/?"),
    "Blocked on a missing secret: `SENTRY_AUTH_TOKEN`. Please add it to the environment and start me again.",
    "Please advise.",
    "What's the deadline format supposed to be — ISO 8601 or a Unix timestamp?",
    ("I tried three fixes for the flaky test and none held. I don't see a way forward without knowing how the "
    "CI runner is configured. Can you paste the runner's config?"),
    "There's no test data for the payment flow. Do you have a sandbox account I could use?",
    "Before I go further, I want to make sure I understood: you want the old endpoints gone entirely, right?",
    "Permission needed: installing the GPU driver requires a reboot of this machine. May I reboot it?",
    ("Let me stop here and check in with you. The refactor touches 61 files instead of the 5 you expected. "
    "Continue or scale back?"),
    "You mentioned a \"v2 spec\". I found v1 and v3. Where's v2?",
    ("I have the fix, but it has to go to the `hotfix` branch, which doesn't exist. Should I create it from "
    "`main` or from the `2.8.1` tag?"),
    "Could you please log in with `az login` and tell me when you're done? I'll take it from there.",
    "I cannot decide between the two for you: A loses history, B doubles the storage cost. What do you prefer?",
    "Do I understand correctly that user IDs should become UUIDs? That's a one-way door, so I haven't run the migration.",
    ("Need input: the vendor changed its API and the old client is gone. Use their SDK (closed source), or "
    "write our own client?"),
    "I'd like your sign-off on the schema before I generate 40 files from it.",
    "Awaiting instructions.",
    "Before touching the payroll code I need one thing cleared up. Gross or net?",
    ("I've mapped out the dependency graph and bumped what was safe. `lodash` 5 would need a rewrite of "
    "`utils/`. Is that in scope?"),
    "Reproduced the crash. Fixing it properly means dropping support for IE11. Are we allowed to do that?",
    "I generated the client from the OpenAPI file, but the file has no auth section. How does the API authenticate?",
    "The repository contains two `Makefile`s, and I edited neither. Which one does CI use?",
    ("I was about to run `terraform destroy`, as the task says. It'd remove the production database too. Please "
    "confirm explicitly."),
    "I've downloaded the dataset, however the licence forbids redistribution. Can we still check it in?",
    ("Installed the toolchain. The board isn't connected to this machine though, so I can't flash it. Please "
    "plug it in and let me know."),
    "Ran the analysis on the sample: 3 of the 9 columns are ambiguous (`dt`, `val`, `src`). What do they mean?",
    "The old tests assert the buggy behaviour. Am I supposed to change the tests or keep the behaviour?",
    "Hmm, the link to the Notion page asks for a login. Mind pasting its contents here?",
    "I rebased the branch and 14 conflicts came up in generated files. Regenerate them or take ours?",
    "The instruction file tells me to ask before adding dependencies: I'd like to add `zod`. Is that fine?",
    "I've drafted the email to the customers in `drafts/outage.md`. I won't send it without your approval.",
    "I don't know which customer you're talking about; there are three Schmidts in the fixtures. Which Schmidt?",
    "My sandbox has no network, so `cargo fetch` fails. Should I vendor the crates, or will you enable network access?",
    "It isn't obvious to me what \"clean up\" covers. Just formatting? Also dead code?",
    "Two-factor code required to publish. Please send me the current OTP.",
    "I wrote the first migration. The second one depends on whether `orders.total` includes tax - does it?",
    "Shall I treat warnings as errors from now on? This is the only open point that keeps me from finishing.",
    "Can't go any further: disk quota exceeded on /home. Free some space and rerun me.",
    "I could use some guidance here: is the goal to reduce memory or CPU time?",
    "The customer's contract number isn't in the PDF. I need it for the header. What is it?",
    "So, final check before I press the button: push to `main` directly?",
    "The design says blue, the screenshot shows green. Who's right?",
    "I've looked at both services. The retry logic could live in either of them; who owns retries in your architecture?",
    ("The `deploy.sh` you mentioned isn't executable and contains hard-coded credentials. I stopped before "
    "running it. Should I run it anyway?"),
    ("The spec file is in Japanese and I may have misread section 4. Could you confirm whether refunds are "
    "allowed after 30 days?"),
    "I created the branch but haven't started on the code: are we targeting Java 17 or 21?",
    "There are uncommitted changes from you in `auth.go`. Can I overwrite them?",
    "Your API key was rejected with 401. Please give me a valid one.",
    "I've prepared the SQL. It rewrites 2 million rows, so I'd rather have someone look at it first. Run it?",
    "Which of the open issues should I start with?",
    "Please tell me the exact wording for the consent banner; legal text isn't something I should invent.",
    "I could finish this today if I knew the endpoint's name. What's it called?",
    "Nothing to build yet - the brief is empty. Give me a task and I'll get going.",
    "I need more information. What browser does the problem occur in?",
    "The plan has three phases. Do you approve phase 1?",
    "The license key expired yesterday. Renew it, and I'll rerun the build.",
    "I'm torn between two names, `Ledger` and `Journal`. It's public API, so you should decide.",
    "We're missing the fonts. Can you add them to `assets/fonts`?",
    "Okay, I understand the problem. How should conflicts between two offline edits be resolved?",
    "I won't proceed with deleting the customer's account unless you explicitly say so.",
    "Everything but the last item is finished. For that one: do you want a hard or a soft limit?",
    "Is it okay to change the database schema? I'd have to for this feature.",
    "Unclear requirement: \"fast\". Under 100 ms? Under 1 s?",
    "I got as far as the login page; it wants a captcha solved. Could you do that for me?",
    "To answer your question properly I'd need the production logs. Where do they live?",
    "The two maintainers disagree in the thread. Whose opinion should I follow?",
    "Stopping here for your review of the plan, as you asked.",
)  # fmt: skip
GOES_ON = (
    "Everything works. Do you have any other tasks?",
    "I could not reproduce the bug, but added a test. All green. Want me to dig deeper?",
    "Refactoring complete; does that look good?",
    "I wrote the FAQ: What is guard? How do I start it? Both are answered on the page.",
    "Done. All 12 tests pass. Would you like me to open a PR?",
    "I've implemented the parser and committed it. Would you like me to also add a benchmark?",
    "I fixed the bug and added a test. Let me know if you have any questions!",
    "Implemented the cache. Anything else?",
    "Why did this fail? Because the path was relative. I fixed it and the tests pass.",
    'The dialog now asks "Are you sure you want to delete this?" before it deletes. Tests pass.',
    "I added the prompt:\n\n```\nDo you want to continue? [y/N]\n```\n\nAll tests pass.",
    "The prompt is in place; it prints\n\n```\nWhich database should I use?\n```",
    "It now prints\n> Should I overwrite the file?",
    "Added the new string `Which file should I open?`",
    'Renamed the button to "Shall I continue?"',
    "What does this do? It walks the tree and collects the leaves. Committed as 1a2b3c4.",
    "All done! Want me to push it?",
    "The refactoring is complete and everything passes. Should I also update the changelog?",
    "I've updated the docs. Feel free to ask if anything is unclear to you.",
    "I committed the fix. If you'd like, I can also backport it. Just let me know!",
    "Finished. Shall I commit these changes?",
    "All tests pass now. Is there anything else you'd like me to do?",
    "The feature is complete. What would you like me to work on next?",
    "I have added the endpoint and its tests. Do you want me to deploy it?",
    "Completed the migration. How does that look?",
    "I removed the dead code. Does that work for you?",
    "Implemented as asked. Next I could add caching or pagination; would you like either?",
    "I created the PR; it is waiting for your review.",
    "Fixed the flaky test. Can I help with anything else?",
    "I wrote a FAQ with the entries *How do I install it?* and *Where are the logs?* and committed it.",
    "Added a section that answers: who may call this? Admins only. Committed.",
    "I've fixed the crash. The question was: which thread owns the lock? The reader does.",
    "The spec did not say which port to use, so I went with 8080. All tests pass.",
    "I wasn't sure whether to use tabs or spaces? The project uses spaces, so I used spaces. Done.",
    "Done. Please let me know if you want any changes.",
    "Everything is committed. Please review and merge when you're ready.",
    "I implemented both variants and committed them. Thanks!",
    "The tests pass. Happy to explain any part of it.",
    "I will look into it.",
    "Working on it; the build is running in the background.",
    "Added the survey with the questions:\n\n- How old are you?\n- Where do you live?",
    "I've completed all tasks.\n\nPossible follow-ups:\n- Should we cache the results?\n- Could we drop Python 3.8?",
    "Should I have used a mutex? No: the queue is already thread-safe. Committed.",
    "Updated `confirm.ts` so that the user is asked: Do you really want to leave? Tests pass.",
    "I've pushed the branch. Would you like me to open a pull request or leave it as it is?",
    "All 40 checks are green. Ready to merge?",
    "I added the retry logic and the tests are passing. Should I proceed with the next task?",
    "Fixed. You can now run `npm start`. Enjoy!",
    "The unclear error message is now fixed. Tests are green.",
    "",
    "Done?",
    ("## Summary\n\n- Added `RetryPolicy`\n- Wired it into the client\n- 14 new tests, all passing\n\nLet me know "
    "if you'd like me to tweak the back-off defaults!"),
    ("I've fixed the race in `queue.py` and committed the change (3f2a91c).\n\nIs there anything else you'd like me "
    "to look at?"),
    "All set. The migration ran cleanly and the tests are green. Do you want me to squash the commits before you merge?",
    ("The bug was a missing await. Why didn't the tests catch it? Because they mocked the client. I replaced the "
    "mock with a real server and committed everything."),
    ("I implemented the wizard. Its second page asks:\n\n    Which plan do you want?\n    Do you accept the "
    "terms?\n\nBoth answers are validated, and the tests pass."),
    ("Apologies for the earlier mistake — I had edited the wrong file. It's fixed now, and I've pushed the branch. "
    "Would you like a walkthrough of the changes?"),
    ("Done! ✅\n\n**What changed**\n- `README.md`: new quick start\n- `docs/faq.md`: *Is it safe to run twice?* and "
    "*How do I undo it?*\n\nEverything is committed."),
    ("I wasn't certain whether you wanted snake_case or camelCase, so I followed the existing files (snake_case). "
    "If you'd rather have the other, tell me and I'll change it. All 52 tests pass."),
    ("The work is finished and committed on `feature/cache`. You may want to consider: should the TTL be "
    "configurable? That could be a follow-up."),
    "I've added the CLI flag and updated the docs. Shall I go ahead and open the pull request?",
    ("Implemented. Note that `npm audit` still reports two advisories in dev dependencies; I left them alone "
    "because they're out of scope. Want me to look into those separately?"),
    ("The refactor is complete: 12 files changed, no behaviour change, test suite green. Please review the diff "
    "when you get a chance and let me know what you think."),
    ("Fixed the typo in the error message: it now reads \"Which file do you mean?\" instead of \"Wich file do you "
    "mean?\". Committed as 9c1d2e3."),
    ("I've finished the first milestone and committed it. Next up is the importer; I'll continue with that in the "
    "next session."),
    "I checked all call sites and no change is needed: the function already handles `None`. The existing test covers it.",
    "Tests pass on 3.11 and 3.12. One open point for later: who should own the nightly job? I've noted it in `TODO.md`.",
    ("I've rewritten the onboarding prompt so that it asks the user \"What is your role?\" first and \"What do you "
    "want to build?\" second.\n\nAll snapshots are updated. Ready for your review!"),
    ("I updated the copy on the landing page. The headline is now: Ready to ship faster? The tests pass and the "
    "change is committed."),
    "The feature works end to end. If anything looks off to you, just say so and I'll adjust it.",
    ("Cleanup is done: removed 214 unused imports and committed. Would you prefer that I also enable the lint rule "
    "so they don't come back?"),
    "I've set up the project. Once you run `npm install`, everything works. Want me to add CI too?",
    "The tests are passing again. Do you want to keep the debug flag? I left it in for now.",
    "Completed. Here's how to try it:\n\n1. Run `make`\n2. Open the page\n\nDoes that match what you had in mind?",
    "I fixed it. Before you deploy, remember to set `API_KEY`. Should I document that?",
    "Wrote the quiz app. Questions included:\n1. What is a closure?\n2. What is hoisting?\n\nAll committed.",
    "The build is fixed. Until you upgrade Node, a warning is printed. Should I silence it?",
    "I created 5 unit tests and they all pass. Could you take a look and tell me if they're what you expected?",
    "Everything you asked for is in place. I'd suggest reviewing `auth.py` first. Any feedback is welcome.",
    "Committed as a1b2c3d. How about adding a changelog entry as well?",
    "The answer to \"should we cache?\" is no; I documented why and committed the note.",
    ("Fixed the off-by-one in `paginate()` and added a regression test. All 214 tests pass. Let me know if you'd"
    " like me to tackle the other TODOs."),
    "All set! The dark mode toggle now persists across reloads. Want me to add it to the settings page as well?",
    "I refactored the module and committed as 4f2a91c. Is there anything else you'd like me to change?",
    ("Summary\n\n- Added retries\n- Updated docs\n\nOne open question for later: should we drop Python 3.8 support"
    " in the next major? Not needed for this change."),
    "The function asks \"Are you sure?\" before deleting and now accepts `--yes`. Tests added and passing.",
    "Why was it failing? The cache key ignored the locale. I've added the locale to the key and committed the fix.",
    ("Committed. I assumed UTC for all timestamps since the spec doesn't say; if you'd prefer local time, it's a"
    " one-line change in `clock.py`."),
    ("I've implemented the CLI flag. You may want to review the naming — does `--dry` or `--dry-run` read better"
    " to you? I went with `--dry-run`."),
    "Done. The README now has a FAQ section:\n\n> ### Can I use this on Windows?\n> Yes.\n\nPushed to the branch.",
    ("Work is complete: 3 files changed, 2 commits. Next steps could be adding CI or publishing to PyPI. Which of"
    " these would you like next?"),
    "I wasn't sure whether you wanted tabs or spaces, so I followed .editorconfig (spaces). Everything's committed.",
    "The build is green now. Shall I open a PR?",
    ("Finished the migration script and tested it against a copy of the database. To apply it, run `make migrate`."
    " Please back up first."),
    ("I updated the copy on the landing page:\n\n```html\n<h1>Ready to ship faster?</h1>\n<p>What are you waiting"
    " for?</p>\n```\n\nCommitted as `feat(web): new hero`."),
    ("I could not reproduce the bug on 3.11 or 3.12, so I added a test that documents the current behaviour and"
    " committed it. If you can share a traceback I can dig further."),
    "Implementation complete. Please review the changes and let me know if you have any questions!",
    ("The three failing tests pass after pinning `urllib3<2`. Root cause: `requests` 2.28 isn't compatible. Do you"
    " want me to also bump requests? It would be a separate change."),
    "Added the prompt \"Overwrite existing file? [y/N]\" to the export command. It defaults to No. Tests cover both answers.",
    "I'm continuing with step 3 of the plan: wiring the handler into the router.",
    "No changes were necessary: the endpoint already validates its input (see `validators.py`, line 40). Tests pass.",
    ("Refactored in 4 commits. What changed?\n\n- `core/` no longer imports `cli/`\n- the loader is lazy\n-"
    " startup is 3x faster"),
    ("Task completed. The only thing I couldn't verify is the macOS build, as there's no runner here. Could you"
    " check it when you get a chance?"),
    ("I've left two TODO comments where behaviour is unclear (\"should this be inclusive?\"), and kept the"
    " existing behaviour in both places. All tests pass, changes committed."),
    "Everything is in place and the suite is green. Would you like a summary of the design decisions?",
    ("I checked whether the cache should be invalidated on write. Should it? Yes: the docs require it, and I've"
    " added the call. Tests pass."),
    "Done! The bot now replies with 'How can I help you?' on start.",
    "Running the full test suite now; I'll report back when it's finished.",
    ("The bug was in the tokenizer. Is this the only place? I searched for the same pattern and found two more,"
    " which I fixed as well."),
    "I split the PR in two commits. Please review when you have time.",
    "All 12 tasks in tasks.md are ticked off and committed. Please let me know what you'd like to work on next!",
    "Fixed. Please note that you need to run `npm install` again, since the lockfile changed.",
    "Deployed config updated, tests green. Please restart the dev server to pick up the change.",
    "I've added a rate limiter (100 req/min). Does that limit sound right? It's configurable through RATE_LIMIT.",
    "Migration done. Should anything go wrong, run `alembic downgrade -1`.",
    ("The linter is clean. I couldn't run the e2e tests because there is no browser here, but unit tests pass."
    " Everything is committed."),
    "Next I will update the docs, then the changelog.",
    "I decided against the new dependency; which library to use can be revisited later. Code is committed on main.",
    ("Refactoring finished: `ask_user()` now raises `QuestionError` if the answer is missing. Who calls it? Only"
    " `cli.py` and `tui.py`."),
    "Committed the fix in 9a8b7c6.\n\nWould it make sense to also backport it to 3.x? Happy to do that.",
    "I've created the issue template with the headings: What happened? What did you expect? How can we reproduce it?",
    "Implementation and tests are in. If CI complains about formatting, please run `make fmt`.",
    "Everything compiles. The warnings about unused imports were there before. Need anything else?",
    ("I reverted the experimental change, since benchmarks showed no gain. The repository is back to where it was;"
    " nothing to commit."),
    ("The work is committed. One thing to decide eventually: do we want the metrics endpoint public? For now it"
    " requires the admin role."),
    ("The importer handles quoted newlines now; 9 new tests, suite green. Would you rather have the fixtures in "
    "YAML? Easy to change later."),
    ("Done — commit 77ac0de. I kept the old flag as an alias. Should it print a deprecation warning? I left "
    "that out for now."),
    "I replaced the modal with a toast. It says \"Want to undo?\" for five seconds. Committed.",
    "What was wrong: the lock was taken twice. What I did: made it re-entrant. What is left: nothing.",
    "All five endpoints are implemented, documented and tested. Curious what you think of the naming?",
    "Pushed to origin/fix-1221. CI is running. Can you merge once it's green?",
    "The docs build again. I wonder whether we still need the PDF target at all? I've kept it.",
    "I ended up not needing the new dependency. Everything's committed; let me know how it goes in production!",
    ("Finished the port to Go 1.22. I was asked to decide between slog and zap? I chose slog, as the standard "
    "library has it."),
    ("Committed. By the way, did you know that the nightly job has been failing since March? It's unrelated, so "
    "I left it."),
    ("Added the quiz endpoint. Example response:\n\n```json\n{\"question\": \"What is 2+2?\", \"choices\": [3, "
    "4]}\n```\n\nTests pass."),
    ("Changed the CLI so that `deploy` asks \"Deploy to production? [y/N]\" unless `--yes` is given. Covered by "
    "two tests; committed as b7."),
    "Task finished. Want to see a demo GIF in the README?",
    ("I've written the RFC (docs/rfc/012.md). Open questions are listed in its last section: who runs the "
    "migration, and when? Committed."),
    "Everything from the list is implemented. If you need the Windows build too, let me know and I'll add it.",
    ("The cache bug is fixed. So why did it only show on Fridays? The weekly job evicts the index. There's a "
    "test for it now."),
    "Merged the two helpers and deleted the dead one. Should be no behaviour change; tests agree. OK?",
    ("All boxes in tasks.md are checked. Next steps for you: review, then tag the release. Shall I prepare the "
    "release notes?"),
    ("I've translated the strings to German. Could a native speaker look over them at some point? Committed in "
    "l10n/de.po."),
    "Implementation is complete and pushed. Please confirm on your end that the webhook fires.",
    "Linting, types and tests are clean. I'd be happy to walk you through it. Which part is most interesting to you?",
    ("Set up the survey form with the fields: What did you like? What should we improve? The form validates and "
    "saves; tests included."),
    "No work needed: the fix is already on main since 5c0ffee. Would you like me to close the issue?",
    ("Upgraded to Django 5. Two deprecation warnings remain in third-party packages. Should we report them "
    "upstream? Not urgent."),
    "I have updated the Dockerfile and verified that the image builds. Do you need it for arm64 as well?",
    "I bumped the version to 4.1.0, tagged it and pushed the tag. Should the next one be 5.0? Something for the roadmap.",
    "Hardened the parser against deep nesting; fuzzing for ten minutes found nothing. Want longer runs?",
    "The new hook debounces input by 200 ms. Feels right? You can tweak `DEBOUNCE_MS`.",
    "Mission accomplished: zero type errors, down from 412. Which folder to tackle next?",
    "I taught the linter about the new import order and reformatted the tree. Anything you'd like different?",
    "I split `models.py` into a package. Imports elsewhere stay valid thanks to re-exports. Good to go?",
    "Fixed in 3 places. How did this slip through? There was no test for leap years; there's one now.",
    "I've given the README a once-over. Would screenshots help?",
    ("Ported the Bash scripts to Python; they behave the same on the recorded inputs. Do you still want the old "
    "ones around? I've kept them in `legacy/`."),
    "The endpoint returns JSON now. Did you want XML too? The ticket only asks for JSON.",
    "Cherry-picked the fix to release/1.x and ran the suite there: green. Should be good to release.",
    "Committed everything on `feat/tree`. You said you'd write the release notes yourself, right? I've left them alone.",
    "I deleted the feature flag and the code behind it. -1,204 lines. Isn't that nice?",
    "Benchmarks: 1.9 s before, 0.4 s after. Commit 0ddba11. Would you like the flame graphs?",
    "Wrote the contract test. It asks the provider `GET /status?verbose=1` and checks the schema. Passing.",
    "Solved! The regex was greedy. Two characters changed. Anything else on your mind?",
    "The chatbot's greeting is now: Hi there! What can I do for you today? Snapshot updated, committed.",
    "I've bisected it to 1f2e3d4 and reverted that commit. Do you happen to know who wrote it? They may want to redo it.",
    "Renamed `master` to `main` everywhere in the docs. Should I have touched the changelog's history? I figured not.",
    "All three bugs squashed, each with a test. May I suggest a refactoring of `Session` some day?",
    "The Helm chart lints and templates fine. Will you deploy it yourself? The steps are in deploy.md.",
    ("Your tests pass with the new resolver. If a lookup is ever slow, would a cache make sense? Let's see what "
    "production says."),
    "I finished the accessibility pass: labels, contrast, focus order. Want a report?",
    "Added dark mode. Not sure you'll like the purple; shall I try another shade?",
    ("Documentation is written and linked from the index. Do we have a style guide I should have followed? I "
    "used Google's."),
    "I've wired the new button to the handler. Clicking it saves the draft. What else can I do for you?",
    "Refactored `Cart` into two classes. Coverage went from 71% to 84%. Any thoughts?",
    "The fix is in. Root cause was a stale closure. Should you see it again, ping me.",
    "I tightened the types in `api/`. mypy --strict passes. Should I do `web/` next?",
    "Committed as 12ab34c: fix(api): handle empty body. Would you like me to add a changelog entry?",
    "Finished! Here's a summary of the 3 commits:\n1. Add model\n2. Add view\n3. Add tests\n\nReady for review?",
    "Tests added for the edge cases. Who would have thought that February 30 gets accepted?",
    "I answered the question in the issue (\"is this thread-safe?\") by adding a section to the docs.",
    "The flaky test is deterministic now. Shall I hunt down the other two flaky ones?",
    "Implemented pagination. Do the page sizes (20/50/100) look reasonable?",
    "I removed the TODO \"// should we retry here?\" since retries are handled by the client.",
    "Work's done. Push when ready!",
    "The upgrade went through without code changes. Was there anything specific you were worried about?",
    "Set up pre-commit with ruff and mypy. Would you prefer black over ruff format? Both give the same result here.",
    ("I looked into the memory leak: it's in the third-party driver, fixed upstream in 2.3.1. Bumped to that "
    "version, leak is gone. Want me to pin it?"),
    "Wrote `docs/adr/0007.md`. Status: proposed. Does the reasoning hold up for you?",
    "It's done, and all acceptance criteria are met. Can I close the ticket?",
    "I've localized the dates. Note: \"Is it Monday yet?\" on the home page is left in English, since it's a slogan.",
    "The search now supports fuzzy matching. How fuzzy? Edit distance 2, configurable.",
    "Removed Python 3.7 from the matrix. Is 3.8 next? It's EOL in October.",
    "Cleaned up the imports and fixed two typos on the way. Would you mind having a quick look?",
    "The report is generated at `out/report.html`. Do you want it emailed to the team too?",
    "Everything passes locally and in CI. Merge at your leisure. Shall I rebase first?",
    "Replaced moment with date-fns (-60 kB). Will there be a need for time zones? If yes, date-fns-tz is an easy add.",
    "Done with all five. Which was the hardest? The parser, by far.",
)  # fmt: skip
STOPS_BEFORE_REASONS = (
    "There's no `staging` remote configured in this repo, only `origin`. Where should I push the branch?",
    ("I'm waiting for your confirmation before I rewrite the git history on `release/4.x`. This requires a"
     " force push and can't be undone for other people's clones."),
    ("OK, I understand the task. Could you share the API key for the geocoding service, or point me to where"
     " it's stored? Without it I'm unable to run the import."),
    ("Should the retry limit apply per request or per session? The code suggests per request, the README says"
     " per session. I'd like to get this right before writing the migration."),
    "This would delete 214 files. Proceed? (y/n)",
    ("I've completed the first part (the parser). For the second part I need a decision from you: should"
     " invalid rows abort the import, or be skipped with a warning? The rest of the work depends on this, so"
     " I've paused here."),
    ("I found the root cause, but the fix touches the public API: `Client.send()` has to return a promise."
     " That's a breaking change for all consumers. I don't want to do that without a green light from your"
     " side."),
    ("Your call: keep Python 3.8 support (then I can't use `match`), or drop it (then the parser gets a lot"
     " simpler). I'm blocked until this is decided."),
    "Everything is prepared for the release, but nothing is published yet.\n\nPublish `3.0.0` to npm now? [yes/no]",
    ("I can't find any file called `invoice_template.docx`. Could you tell me its location? I searched the"
     " repository and the mounted volumes."),
    ("Thanks for the details. One thing remains before I can write any code: who is allowed to see archived"
     " projects? The policy file lists three roles, and the answer shapes the whole schema."),
    ("I've read both design documents and they disagree.\n\n- `docs/auth.md`: refresh tokens are rotated on"
     " every use\n- `docs/api.md`: refresh tokens are static for 90 days\n\nI'm stopping here until one of"
     " them is confirmed as the source of truth."),
    ("Is `eu-west-1` the right region? The Terraform state refers to it, but your message says Frankfurt,"
     " which is `eu-central-1`. Creating the bucket in the wrong place would be expensive to undo."),
    ("I need a human to complete the OAuth consent screen: open https://accounts.example.com/o/consent?id=7"
     " in a browser, sign in and paste the code here."),
    ("I don't have enough information to fix this bug. I'd need the stack trace or the steps to reproduce it,"
     " and the version it happens in."),
    ("Your AWS session has expired (`ExpiredToken`). Run `aws sso login` and let me know when you're back in,"
     " then I'll continue with step 2 of 5."),
    "Version 2.3 or 3.0? The changelog mentions both for this change.",
    ("I cannot proceed: `git push` is rejected because the branch is protected, and the task explicitly says"
     " that the result must be on `main`. Someone with admin rights has to lift the protection."),
    ("I couldn't find the acceptance criteria you refer to (\"as agreed last week\"). Can you give me the"
     " gist of that agreement? I have no record of earlier conversations."),
    ("Cloning failed:\n\n```\ngit@github.com: Permission denied (publickey).\n```\n\nAn SSH key with access"
     " to `acme/infra` is required on this machine. Add one and run me again."),
    "Step 1 (backup) is finished. Step 2 wipes the disk `/dev/sdb`. Ready to continue?",
    ("None of the branches contains the commit you mention (`deadbee`). Was it maybe never pushed? Please"
     " check on your machine and push it, otherwise there's nothing I can cherry-pick."),
    ("I'm at a decision point. Migrating the sessions in place logs out every user once; a dual-write period"
     " avoids this but takes about a week of work. I don't think that's mine to decide."),
    ("Do you have a preference for the test framework? The repository has neither Jest nor Vitest, and I'd"
     " start with the set-up."),
    ("I could delete the 90 orphaned S3 objects now (38 GB). They have no references, but there's also no"
     " backup. Delete them?"),
    ("Conflict: your instruction says to keep the public API, the linked RFC says to rename `open()` to"
     " `connect()`. Until I know which takes precedence I'd be guessing."),
    ("I can't find the API specification you mentioned (docs/api.yaml). Could you tell me where it is? I'm stopping"
    " here until I have it."),
    ("Your input is needed: the requirements of the two customers contradict each other, and I don't know which"
    " takes precedence."),
    "The tests need a running Postgres, which I cannot start in this sandbox. How should I proceed?",
    "Sorry, I couldn't go any further: I need the value of `STRIPE_KEY`. Could you add it to `.env`?",
    "I need someone with admin rights to enable the GitHub app; after that I can finish the last two steps.",
    ("Is it OK to bump the minimum Node version to 22? The library requires it, and I don't want to break your"
    " users."),
    ("I don't have an answer for the open point in the design doc: who owns the retry policy, the client or the"
    " server? I need that settled before I can write the client."),
    "I've outlined the change in PLAN.md. Please review the plan and tell me if I should go ahead.",
)  # fmt: skip
"""Stops behind which the message gives reasons, or that name what the user has to do first."""
ENDS_WITH_REMARKS = (
    ("The endpoint now returns 404 instead of 500 for unknown ids. Tests added. I noticed that `DELETE` has"
     " the same problem, but left it as it's outside of this task. Should that be a separate ticket?"),
    ("Summary of today's session: the exporter writes Parquet, partitioned by day; the docs describe the"
     " layout; integration tests run against MinIO. Would it help to have a notebook that shows how to read"
     " the files?"),
    ("The performance regression came from `JSON.parse` in a hot loop. It's now parsed once. p95 went from"
     " 840 ms to 95 ms in the benchmark; real traffic will differ, so please confirm in Grafana after the"
     " rollout."),
    ("That's everything on the list. 5 commits, all on `cleanup`. Which one should you look at first?"
     " Probably `c0ffee1`, since it touches the scheduler."),
    ("Here's what changed since yesterday: the importer is twice as fast, error messages name the line, and"
     " the docs have a page about encodings. Next up could be the exporter. Your call."),
)  # fmt: skip
CASES = [(message, True) for message in STOPS] + [(message, False) for message in GOES_ON]


def test_at_least_95_percent_are_right_and_no_healthy_ending_is_blocked() -> None:
    wrong = [text for text, stops in CASES if (find_question(text) is not None) != stops]
    assert len(CASES) >= 80
    assert len(wrong) <= 0.05 * len(CASES), wrong
    assert not [text for text in wrong if text in GOES_ON]


def test_at_least_95_percent_of_hard_messages_are_right_and_no_healthy_one_is_blocked() -> None:
    missed = [text for text in closing_messages.ASKS if find_question(text) is None]
    blocked = [text for text in closing_messages.GOES_ON if find_question(text) is not None]
    assert len(missed) <= 0.05 * len(closing_messages.ASKS), missed
    assert blocked == []


@pytest.mark.parametrize("message", STOPS_BEFORE_REASONS)
def test_reasons_behind_a_stop_do_not_hide_it(message: str) -> None:
    assert find_question(message) is not None


@pytest.mark.parametrize("message", ENDS_WITH_REMARKS)
def test_remarks_behind_finished_work_stop_nothing(message: str) -> None:
    assert find_question(message) is None


def outputs(message: str) -> list[bytes]:
    codex = {
        "type": "item.completed",
        "item": {"id": "j", "type": "agent_message", "text": message},
    }
    gemini = {"type": "message", "role": "assistant", "content": message}
    return [
        jsonl(init(), says(message), result(message)),
        jsonl(
            {"type": "thread.started", "thread_id": "t1"},
            {"type": "turn.started"},
            codex,
            {"type": "turn.completed"},
        ),
        jsonl(
            {"type": "init", "session_id": "s1", "model": "m"},
            gemini,
            {"type": "result", "status": "success"},
        ),
        f"{message}\n".encode(),
    ]


@pytest.mark.parametrize("message", [STOPS[0], STOPS[3], GOES_ON[0], GOES_ON[7]])
def test_every_agent_asks_in_the_same_words(message: str) -> None:
    found = [classify(data, b"", None, 0, NOW) for data in outputs(message)]
    expected = "question" if message in STOPS else "ok"
    assert [one.outcome for one in found] == [expected] * 4


def asked(message: str) -> Classification:
    return classify(jsonl(init(), says(message), result(message)), b"", "claude", 0, NOW)


def test_the_words_of_the_question_are_kept() -> None:
    assert asked(STOPS[0]).words == "Should I use PostgreSQL or SQLite?"
    assert asked(GOES_ON[0]).words is None


WHICH = "Which database should I use?"


def by_tool(agent: str, message: str) -> bytes:
    """What each CLI prints when the agent asks with the tool for it, and then ends with a message."""
    listed = {"questions": [{"question": WHICH, "header": "DB", "options": [{"label": "SQLite"}]}]}
    if agent == "gemini":
        return jsonl(
            {"type": "init", "session_id": SESSION, "model": "m"},
            {"type": "tool_use", "tool_name": "ask_user", "tool_id": "a", "parameters": listed},
            {"type": "tool_result", "tool_id": "a", "status": "error", "output": "denied"},
            {"type": "message", "role": "assistant", "content": message},
            {"type": "result", "status": "success"},
        )
    if agent == "opencode":
        state = {"status": "error", "input": listed, "error": "The user dismissed this question"}
        parts = [
            ("tool_use", {"type": "tool", "tool": "question", "state": state}),
            ("text", {"type": "text", "text": message}),
            ("step_finish", {"reason": "stop", "cost": 0}),
        ]
        return jsonl(*({"type": kind, "sessionID": "s1", "part": part} for kind, part in parts))
    if agent == "copilot":
        request = {"toolCallId": "c", "name": "ask_user", "arguments": {"question": WHICH}}
        return jsonl(
            {"type": "session.start", "data": {"sessionId": SESSION}},
            {"type": "assistant.message", "data": {"content": "", "toolRequests": [request]}},
            {"type": "tool.execution_complete", "data": {"toolCallId": "c", "success": True}},
            {"type": "assistant.message", "data": {"content": message, "toolRequests": []}},
            {"type": "result", "sessionId": SESSION, "exitCode": 0},
        )
    tool = "AskUserQuestion" if agent == "claude" else "ask_user_question"
    return jsonl(init(), uses(tool, arguments=listed), says(message), result(message))


AGENTS = ("claude", "qwen", "gemini", "opencode", "copilot")


@pytest.mark.parametrize("agent", AGENTS)
def test_a_question_by_the_tool_for_it_has_its_words(agent: str) -> None:
    found = classify(by_tool(agent, "I could not ask."), b"", agent, 0, NOW)
    assert (found.outcome, found.words) == ("question", WHICH)


@pytest.mark.parametrize("agent", AGENTS)
def test_an_offer_by_the_tool_after_the_work_is_no_question(agent: str) -> None:
    offer = by_tool(agent, "I added the page, and all tests pass.")
    offer = offer.replace(WHICH.encode(), b"Would you like me to open a PR?")
    assert classify(offer, b"", agent, 0, NOW).outcome == "ok"
