"""Makes keys for strangers. See keys_test.go for what is read and written."""

import base64
import json
import struct
import sys

import guards

for line in sys.stdin:
    asked = json.loads(line)
    units = asked.get("units") or []
    given = asked.get("text")
    if given is None:
        given = struct.pack(f"<{len(units)}H", *units).decode("utf-16-le", "surrogatepass")
    options = {name: asked[name] for name in ("fold", "prefix") if name in asked}
    options["key"] = asked.get("keyText")
    if "key" in asked:
        options["key"] = base64.b64decode(asked["key"])
    try:
        result = guards.account_key(given, **options) if asked.get("account") else guards.ip_key(given, **options)
    except Exception as error:
        result = type(error).__name__
        if len(str(error)) > 99:
            result = "a message that shows the value"
    print(result)
