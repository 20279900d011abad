package lambdafn

var ThroughFreezes = throughFreezes
