"""Runs CPython's own tests of one module and writes a line of JSON for each: `run_unittest.py OUT MODULE [FLAG...]`.

It runs inside a job and bare alike, with the runtime root's interpreter. A test that began and has no outcome took the
interpreter with it. Flags: `snippet` (the names come as params of a snippet), `resource=NAME` (one that is needed).
"""

import json
import os
import sys
import tempfile
import time
import unittest


class Log(unittest.TestResult):
    """Outcomes, written as they come: what is on disk survives whatever a test does to its interpreter."""

    def __init__(self, path):
        super().__init__()
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o644)
        self.pid = os.getpid()
        self.begun = 0.0
        self.worst = None

    def write(self, **line):
        if os.getpid() == self.pid:  # tests fork
            os.write(self.fd, json.dumps(line).encode() + b"\n")

    @staticmethod
    def name(test):
        return getattr(test, "id", lambda: str(test))()

    def note(self, outcome, text=""):
        order = ("pass", "skip", "fail")
        if self.worst is None or order.index(outcome) > order.index(self.worst[0]):
            self.worst = (outcome, text)

    def startTest(self, test):
        super().startTest(test)
        self.begun, self.worst = time.monotonic(), None
        self.write(begin=self.name(test))

    def stopTest(self, test):
        super().stopTest(test)
        outcome, text = self.worst or ("pass", "")
        spent = round(1000 * (time.monotonic() - self.begun))
        self.write(id=self.name(test), outcome=outcome, text=text, ms=spent)
        self.worst = None

    def outside(self, test, outcome, text):
        """What happens around tests: setUpClass, setUpModule, an import."""
        self.write(id=self.name(test), outcome=outcome, text=text, ms=0)

    def addSuccess(self, test):
        self.note("pass")

    def addError(self, test, err):
        text = f"{err[0].__name__}: {err[1]}"[-300:]
        if isinstance(test, unittest.TestCase):
            self.note("fail", text)
        else:
            self.outside(test, "fail", text)

    addFailure = addError

    def addSkip(self, test, reason):
        if isinstance(test, unittest.TestCase):
            self.note("skip", reason)
        else:
            self.outside(test, "skip", reason)

    def addExpectedFailure(self, test, err):
        self.note("pass")

    def addUnexpectedSuccess(self, test):
        self.note("fail", "succeeded, which its author does not expect")

    def addSubTest(self, test, subtest, err):
        if err is not None:
            self.note("fail", f"{err[0].__name__}: {err[1]}"[-300:])


def main(out, module, flags):
    log = Log(out)
    # A folder of its own below the temporary one, as the interpreter's own runner does.
    os.chdir(tempfile.mkdtemp(prefix="test-"))
    from test import support

    support.use_resources = [flag[9:] for flag in flags if flag.startswith("resource=")]
    support.verbose = 0
    sys.argv[1:] = []
    try:
        suite = unittest.defaultTestLoader.loadTestsFromName(module)
    except unittest.SkipTest as skip:
        log.outside(module, "skip", str(skip))
    else:
        suite.run(log)
    log.write(end=module)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3:])
