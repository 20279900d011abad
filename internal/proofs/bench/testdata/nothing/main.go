// Nothing is an empty program. It shows how long Go itself takes to start, for comparison with an app.
package main

func main() {}
