package sqsqueue

const Timeout = timeout

var DelaySeconds = delaySeconds
