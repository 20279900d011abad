"""Invokes functions with the AWS CLI. Reads a JSON array of calls from stdin and writes the outcomes to stdout, in order.

Loading the CLI takes half a second. This process loads it once, and each call is a copy of this process that runs one command.
"""

import json
import os
import re
import sys
import tempfile

from awscli.clidriver import create_clidriver

AT_ONCE = int(sys.argv[1])
ENDPOINT = os.environ["AWS_ENDPOINT_URL_LAMBDA"]
EXCEPTION = re.compile(r"An error occurred \((\w+)\)")

cli = create_clidriver()


def start(call, folder):
    """Starts the command in a copy of this process. Returns the id of the copy."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        for stream, name in ((1, "stdout"), (2, "stderr")):
            os.dup2(os.open(os.path.join(folder, name), os.O_WRONLY | os.O_CREAT), stream)
        command = ["lambda", "invoke", "--endpoint-url", ENDPOINT, "--function-name", call["function"]]
        status = cli.main([*command, "--payload", json.dumps(call["event"]), os.path.join(folder, "answer.json")])
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def outcome(folder):
    with open(os.path.join(folder, "stderr")) as f:
        stderr = f.read()
    if exception := EXCEPTION.search(stderr):
        return {"exception": exception[1]}
    try:
        with open(os.path.join(folder, "stdout")) as stdout, open(os.path.join(folder, "answer.json")) as answer:
            return {"functionError": json.load(stdout).get("FunctionError", ""), "payload": json.load(answer)}
    except (OSError, ValueError) as error:
        sys.exit(f"the AWS CLI gave no answer: {error}\n{stderr}")


calls = json.load(sys.stdin)
with tempfile.TemporaryDirectory() as root:
    folders = [os.path.join(root, str(i)) for i in range(len(calls))]
    running = 0
    for call, folder in zip(calls, folders):
        if running == AT_ONCE:
            os.wait()
            running -= 1
        os.mkdir(folder)
        start(call, folder)
        running += 1
    for _ in range(running):
        os.wait()
    json.dump([outcome(folder) for folder in folders], sys.stdout, separators=(",", ":"))
