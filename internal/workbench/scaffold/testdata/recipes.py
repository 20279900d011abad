"""Runs the apps of docs/recipes.md and docs/sign-in.md.

It reads a JSON object with the apps, the list of activities and a user, and
prints for each app how often it worked, and what it returned or raised.
"""

import json
import sys
import textwrap
from types import SimpleNamespace

from guards import Guards, LimitedError

kitchen = json.load(sys.stdin)
worked = []


def work(*args, **options):
    worked.append(args)
    return SimpleNamespace(total_tokens=1400)


names = {
    "KEY": b"sixteen bytes...",
    "account": kitchen["user"],
    "account_key": lambda name, key: kitchen["user"],
    "address": "192.0.2.1",
    "code": "123456",
    "code_id": kitchen["user"],
    "ip_key": lambda address: "lobby",
    "name": "Ann",
    "password": "secret",
    "pin": "1234",
    "start_session": work,
    "verify": work,
    "voucher": "V-1",
    "guards": Guards(activities=kitchen["activities"]),
    "model": SimpleNamespace(complete=work),
    "is_member": lambda user, room: True,
    "pages": [1, 2],
    "plan": "free",
    "region": "IN",
    "room_id": "lobby",
    "tenant_id": "lobby",
    "draft": None,
    "prompt": None,
    "render": work,
    "save": work,
    "send_mail": work,
}
for app in kitchen["apps"]:
    worked.clear()
    exec("def app(user_id):\n" + textwrap.indent(app, "    "), names)
    try:
        result = names["app"](kitchen["user"])
    except LimitedError:
        result = "LimitedError"
    print(len(worked), result if isinstance(result, str) or result is None else result[1])
