package lambdatest

const region = "us-east-1"

// environment returns the variables that Lambda sets for a function, with
// made-up credentials. HOME is the empty directory dir, so that no real ~/.aws
// is read.
func environment(function, dir, api string) []string {
	return []string{
		"AWS_LAMBDA_RUNTIME_API=" + api,
		"AWS_LAMBDA_FUNCTION_NAME=" + function,
		"AWS_LAMBDA_FUNCTION_VERSION=$LATEST",
		"AWS_LAMBDA_FUNCTION_MEMORY_SIZE=128",
		"AWS_LAMBDA_INITIALIZATION_TYPE=on-demand",
		"AWS_LAMBDA_LOG_FORMAT=JSON",
		"AWS_LAMBDA_LOG_LEVEL=INFO",
		"AWS_LAMBDA_LOG_GROUP_NAME=/aws/lambda/" + function,
		"AWS_LAMBDA_LOG_STREAM_NAME=2026/01/01/[$LATEST]00000000000000000000000000000000",
		"AWS_EXECUTION_ENV=AWS_Lambda_provided.al2023",
		"AWS_REGION=" + region,
		"AWS_DEFAULT_REGION=" + region,
		"AWS_ACCESS_KEY_ID=test",
		"AWS_SECRET_ACCESS_KEY=test",
		"AWS_SESSION_TOKEN=test",
		"LAMBDA_TASK_ROOT=" + dir,
		"LAMBDA_RUNTIME_DIR=" + dir,
		"_HANDLER=bootstrap",
		"HOME=" + dir,
		"LANG=en_US.UTF-8",
		"PATH=/usr/local/bin:/usr/bin:/bin",
		"TZ=:UTC",
	}
}
