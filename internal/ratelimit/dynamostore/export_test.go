package dynamostore

// UpdateInput is what Update sends.
var UpdateInput = updateInput

// Key is the key of an item in the table.
var Key = key
