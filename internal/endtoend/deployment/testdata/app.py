"""Asks for six uploads of one user, and prints the answers."""

import sys

from activities import ACTIVITIES
from guards import Guards

guards = Guards(activities=ACTIVITIES)
answers = []
for _ in range(6):
    decision = guards.check("upload_photo", user_id=sys.argv[1])
    answers.append("allowed" if decision.allowed else decision.reason)
print(*answers)
