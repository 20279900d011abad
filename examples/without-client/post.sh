#!/bin/sh
# Asks a guard with the AWS CLI: sh post.sh USER REQUEST_ID
case $1$2 in *[!A-Za-z0-9._:@+-]*) echo "post.sh: an id has a character that needs JSON escapes" >&2; exit 2 ;; esac
echo '{"userId": "'"$1"'", "activity": "create_post", "requestId": "'"$2"'"}' >event.json
# Both versions of the AWS CLI send a fileb:// payload unchanged.
export AWS_RETRY_MODE=standard AWS_MAX_ATTEMPTS=3
if ! aws lambda invoke --function-name posts-guard --payload fileb://event.json \
	--cli-connect-timeout 1 --cli-read-timeout 2 answer.json >invocation.json 2>problem.txt; then
	cat problem.txt >&2
	case $(cat problem.txt) in
	*"Connect timeout"* | *"Read timeout"* | *"Could not connect"* | *"Connection was closed"*) ;;
	*"(TooManyRequestsException)"* | *"(ServiceException)"* | *"(50"[0-9]")"*) ;;
	*) exit 1 ;; # a mistake
	esac
	echo "201 created" # an outage: go on without a limit
elif grep -q '"errorType":"\(Unavailable\|Sandbox.Timedout\)"' answer.json; then
	cat answer.json >&2
	echo "201 created" # an outage: go on without a limit
elif grep -q '"allowed":true' answer.json; then
	echo "201 created" # do it here
elif grep -q '"allowed":false' answer.json; then
	echo "429 $(cat answer.json)"
else
	cat answer.json >&2
	exit 1
fi
