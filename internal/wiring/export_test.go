package wiring

// For the tests of this package.
var (
	ThroughFreezes = throughFreezes
	Memory         = Environment.memory
)
