"""Programs that run inside a test runner and write down what each test did.

guard copies this package under a random name into a private folder; `settings.json` there says what to do. It imports nothing
of guard and runs on Python 3.7 and later.
"""
