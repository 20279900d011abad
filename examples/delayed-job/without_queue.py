"""Gives members of a server a role. Ten changes run in 10 seconds; each further one waits here for its place.

without_queue.py SERVER ROLE MEMBER...
"""

import sys
import time

from activities import ACTIVITIES
from guards import Guards

guards = Guards(activities=ACTIVITIES, on_outage="deny")  # a job can wait until the guard is back
guards.ready("update_member_role")


def change_in_its_place(server: str, member: str, role: str) -> None:
    job = f"{server}-{member}-{role}"  # one id for each job, so that a repeat takes no second place
    place = {}
    while not (decision := guards.check("update_member_role", user_id=server, request_id=job, **place)).allowed:
        wait = (decision.wait_time or 1000) / 1000  # an outage has no wait time
        print(f"{member}: {decision.reason}, waits {wait:.1f} s", flush=True)
        time.sleep(wait)
        if decision.ready_at:
            place = {"ready_at": decision.ready_at}
    print(f"{member}: is {role} now", flush=True)  # change the role here


for member in sys.argv[3:]:
    change_in_its_place(sys.argv[1], member, sys.argv[2])
