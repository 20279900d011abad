// Nothing does nothing. It is the start of Go itself, which the start of an app is compared with.
package main

func main() {}
