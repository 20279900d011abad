package client_test

import (
	"fmt"

	"github.com/cric-talk/guards/client"
)

// Somebody signs up, so there is no account yet: the address is limited.
func ExampleIPKey() {
	key, err := client.IPKey("[2001:db8:1:2:3:4:5:6]:51034", client.IPOptions{}) // of a request's RemoteAddr
	fmt.Println(key, err)
	key, err = client.IPKey("[2001:db8:1:2:ffff::1]:49152", client.IPOptions{}) // the same home
	fmt.Println(key, err)
	key, err = client.IPKey("[::ffff:192.0.2.1]:51034", client.IPOptions{})
	fmt.Println(key, err)
	// Output:
	// 2001:db8:1:2::/64 <nil>
	// 2001:db8:1:2::/64 <nil>
	// 192.0.2.1 <nil>
}

// Somebody signs in with a name that no account may have.
func ExampleAccountKey() {
	secret := []byte("at least 16 secret bytes")
	key, err := client.AccountKey(" Ann@Example.com\n", client.AccountOptions{Key: secret})
	fmt.Println(key, err)
	key, err = client.AccountKey("ann@example.com", client.AccountOptions{Key: secret})
	fmt.Println(key, err)
	// Output:
	// d0c6486d9cdb48f02378d41249c8abd7 <nil>
	// d0c6486d9cdb48f02378d41249c8abd7 <nil>
}
