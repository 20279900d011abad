package pagefile

// OfLayer is where a layer has a page, for tests.
var OfLayer = &ofLayer
