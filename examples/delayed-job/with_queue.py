"""Gives members of a server a role. Ten changes run in 10 seconds; the guard puts each further one on its queue.

with_queue.py SERVER ROLE MEMBER...
"""

import sys
import time

from activities import ACTIVITIES
from guards import Guards

guards = Guards(activities=ACTIVITIES, on_outage="deny")  # a job can wait until the guard is back
guards.ready("update_member_role")


def change_or_queue(server: str, member: str, role: str) -> None:
    job = {"member": member, "role": role}  # the message on the ready queue has it
    request = {"user_id": server, "request_id": f"{server}-{member}-{role}", "job": job}
    while not (decision := guards.check("update_member_role", **request)).allowed:
        if decision.ready_at:
            print(f"{member}: is on the queue until its place comes up", flush=True)
            return
        time.sleep((decision.wait_time or 1000) / 1000)  # no place in the next 15 minutes, or an outage
    print(f"{member}: is {role} now", flush=True)  # change the role here


for member in sys.argv[3:]:
    change_or_queue(sys.argv[1], member, sys.argv[2])
