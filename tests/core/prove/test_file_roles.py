"""Which files are tests, which steer them, and which are code, by the customs of each language."""

import pytest

from guard.core.prove.file_roles import FileRoles

ROLES = {
    "python": (
        "test: test_a.py a_test.py tests.py pkg/tests/data.json testing/test_b.py fixtures/a.json pkg/expected/a.txt",
        "steering: conftest.py sub/conftest.py pytest.ini tox.ini noxfile.py sitecustomize.py a.pth .coveragerc .env .env.test",
        "code: a.py testing.py contest.py src/latest/a.py pyproject.toml fixtures/a.py unexpected/a.txt",
    ),
    "javascript": (
        "test: a.test.js a.spec.tsx a.test.mjs __tests__/a.js __mocks__/fs.js src/__snapshots__/a",
        "steering: jest.config.ts vitest.config.mts vite.config.js jest.setup.js src/setupTests.ts .mocharc.yml .npmrc a.snap",
        "code: a.js attest.js spec.js package.json",
    ),
    "go": ("test: a_test.go pkg/testdata/x.json", "code: a.go go.mod test.go"),
    "rust": ("test: tests/a.rs src/a_test.rs", "steering: .cargo/config.toml", "code: src/lib.rs"),
    "java": (
        "test: src/test/java/A.java src/test/resources/a.xml ATest.java AIT.java",
        "steering: pom.xml sub/build.gradle.kts gradle.properties .mvn/maven.config",
        "code: src/main/java/A.java Contest.txt",
    ),
    "ruby": (
        "test: spec/a_spec.rb spec/spec_helper.rb test/test_a.rb lib/a_test.rb",
        "steering: .rspec Rakefile",
        "code: lib/a.rb Gemfile",
    ),
    "ci": ("steering: .github/workflows/a.yml .gitlab-ci.yml Jenkinsfile",),
}


@pytest.mark.parametrize("lines", ROLES.values(), ids=ROLES)
def test_each_file_has_its_role_by_custom(lines: tuple[str, ...]) -> None:
    for line in lines:
        role, _, paths = line.partition(": ")
        for path in paths.split():
            assert (path, FileRoles().role(path)) == (path, role)
