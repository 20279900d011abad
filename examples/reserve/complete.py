"""Reserves 4,000 tokens for a user and settles for what was used: python complete.py USER."""

import sys

from guards import GuardActivity, Guards

guards = Guards()
activity = GuardActivity("exports-guard", "complete")  # 100000/1d, Hold
reserved = guards.check(activity, user_id=sys.argv[1], count=4000)
if reserved.allowed:
    used = 1400  # ask the model
    reserved.settle(used)
    print(f"{used} tokens")
else:
    print(f"429 {reserved.message}")
