package wiring

// For the tests of this package.
var (
	ThroughFreezes = throughFreezes
	ReadMemory     = readMemory
)
