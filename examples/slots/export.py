"""Takes one of three slots for a user and works: python export.py USER."""

import sys

from guards import GuardActivity, Guards

guards = Guards()
activity = GuardActivity("exports-guard", "export")  # with your list: "export"
with guards.slot(activity, user_id=sys.argv[1]) as slot:
    for page in [1, 2, 3] if slot.allowed else []:
        if slot.lost:
            sys.exit("the slot is lost")
        print(f"page {page}")  # render it
if not slot.allowed:
    print(f"429 {slot.decision.message}")
