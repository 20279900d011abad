package client

// Forget makes this process forget that an address, such as http://127.0.0.1:3001, has
// answered in HTTP. The system can give a test the port of a server that another test
// has closed.
func Forget(address string) { spoken.Delete(address) }
