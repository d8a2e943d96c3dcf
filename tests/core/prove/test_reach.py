"""Which files of tests could change what the tests of other files see."""

import pytest

from guard.core.prove.reach import count_patches, may_reach_out

HEAD = "import sys\nimport pytest\nimport calc\nfrom calc import add, TABLE\n\n"
CONTAINED = {
    "an assertion": "def test_it():\n    assert calc.add(1, 2) == 3\n",
    "a docstring": '"""Sums."""\n',
    "parameters": '@pytest.mark.parametrize("a", [1, 2])\ndef test_it(a):\n    assert add(a, 0) == a\n',
    "an expected error": "def test_it():\n    with pytest.raises(ValueError, match='no'):\n        add('', 1)\n",
    "a fixture": "@pytest.fixture\ndef rows():\n    return [1]\n\n\ndef test_it(rows):\n    rows.append(2)\n    rows[0] = 3\n",
    "a fixture of the module": '@pytest.fixture(scope="module")\ndef rows():\n    return [1]\n',
    "the fixture that takes changes back": "def test_it(monkeypatch):\n    monkeypatch.setattr(calc, 'add', len)\n",
    "the type of that fixture": "def test_it(monkeypatch: pytest.MonkeyPatch) -> None:\n    monkeypatch.chdir('/')\n",
    "an attribute by its name": "def test_it():\n    assert getattr(calc, 'add')\n",
    "files of its own": "def test_it(tmp_path):\n    (tmp_path / 'a').write_text('x')\n",
    "a class": "class TestIt:\n    def setup_method(self):\n        self.rows = []\n",
    "a skip by platform": "@pytest.mark.skipif(sys.platform == 'win32', reason='no')\ndef test_it():\n    pass\n",
}
REACHING = {
    "a function of the code": "calc.add = lambda a, b: 3\n",
    "a function of the code, in a test": "def test_it():\n    calc.add = len\n",
    "by another name": "other = calc\nother.add = len\n",
    "setattr": "def test_it():\n    setattr(calc, 'add', len)\n",
    "the dictionary of the module": "def test_it():\n    calc.__dict__['add'] = len\n",
    "the code of the function": "def test_it():\n    calc.add.__code__ = len\n",
    "a patch of its own": "def test_it():\n    pytest.MonkeyPatch().setattr(calc, 'add', len)\n",
    "an attribute by a hidden name": "def test_it():\n    getattr(calc, '__dict__')['add'] = len\n",
    "an attribute by an unknown name": "def test_it():\n    getattr(calc, '__di' + 'ct__')\n",
    "vars": "def test_it():\n    vars(calc)['add'] = len\n",
    "a table of the code": "def test_it():\n    TABLE['add'] = len\n",
    "a table of the code, by a method": "def test_it():\n    calc.TABLE.update(add=len)\n",
    "the table of modules": "def test_it():\n    sys.modules['calc'] = None\n",
    "the items of the session": "def test_it(request):\n    del request.session.items[:]\n",
    "the runner": "import _pytest.python\n",
    "the rubbish": "import gc\n",
    "a patch that stays": "from unittest import mock\n\n\ndef test_it():\n    mock.patch('calc.add', len).start()\n",
    "a context that stays": "import contextlib\n\n\ndef test_it():\n    contextlib.ExitStack().enter_context(None)\n",
    "a fixture of the session": "@pytest.fixture(scope='session', autouse=True)\ndef all_of_it():\n    pass\n",
    "a fixture of an unknown scope": "@pytest.fixture(scope=calc.SCOPE)\ndef all_of_it():\n    pass\n",
    "a plugin": "pytest_plugins = ['tests.more']\n",
    "another self": "def test_it(other=1, self=calc):\n    self.add = len\n",
    "a call when it is loaded": "calc.enable()\n",
    "no Python": "def test_it(:\n",
    "the environment": "import os\nos.environ['A'] = '1'\n",
}


@pytest.mark.parametrize("text", CONTAINED.values(), ids=CONTAINED)
def test_most_tests_keep_to_themselves(text: str) -> None:
    assert not may_reach_out("tests/test_it.py", HEAD + text, is_isolated=False)


@pytest.mark.parametrize("text", REACHING.values(), ids=REACHING)
def test_some_reach_out(text: str) -> None:
    assert may_reach_out("tests/test_it.py", HEAD + text, is_isolated=False)


@pytest.mark.parametrize(
    ("path", "text", "is_isolated", "reaches"),
    [
        ("test/a.test.js", "calc.add = 1", True, False),
        ("test/a.test.ts", "calc.add = 1", False, True),
        ("a_test.go", "func TestA(t *testing.T) {\n\tgot := Add(1, 2)\n}\n", False, False),
        ("a_test.go", "func init() { Add = nil }\n", False, True),
        ("a_test.go", "func TestMain(m *testing.M) {}\n", False, True),
        ("a_test.go", "func TestA(t *testing.T) {\n\tAdd = nil\n}\n", False, True),
        ("tests/a.rs", "fn a() {}", False, False),
        ("spec/a_spec.rb", "", False, True),
    ],
)
def test_other_languages_have_their_own_ways(
    path: str, text: str, is_isolated: bool, reaches: bool
) -> None:
    assert may_reach_out(path, text, is_isolated=is_isolated) is reaches


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("import calc\n\ncalc.add = len\n", 1),
        ("import calc\n\n\ndef arm():\n    calc.add = calc.sub = len\n", 2),
        ("from calc import TABLE\n\nTABLE['add'] = len\nTABLE.update(sub=len)\n", 2),
        ("import calc\n\nsetattr(calc, 'add', len)\n", 1),
        ("import calc\n\ncalc.__dict__['add'] = len\n", 2),
        ("import calc\n\ncalc.add.__code__ = len.__code__\n", 2),
        ("def broken(:\n", 1),
        (
            "import calc\n\n\nclass Sums:\n    def __init__(self):\n        self.rows = [calc.add]\n",
            0,
        ),
        ("rows = {}\nrows['a'] = 1\n", 0),
    ],
)
def test_code_that_changes_other_code_is_counted(text: str, number: int) -> None:
    assert count_patches(text) == number
