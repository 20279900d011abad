package dynamostore

// UpdateInput is what Update sends.
var UpdateInput = updateInput
