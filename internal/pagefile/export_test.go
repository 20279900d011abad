package pagefile

// InLambda is where a program in Lambda has its page, for tests.
var InLambda = &inLambda
