package main

import (
	"errors"
	"fmt"
	"net/url"

	"github.com/cric-talk/guards/internal/input"
)

// storeFlags choose where a command counts.
type storeFlags struct {
	Store string `enum:"memory,dynamodb" default:"memory" help:"Where to count: memory (the embedded store, gone when the command ends) or dynamodb."`
	tableFlags
}

// tableFlags choose a table in DynamoDB.
type tableFlags struct {
	Table    string `default:"rateLimit" env:"TABLE_NAME" placeholder:"NAME" help:"The DynamoDB table (${default})."`
	Endpoint string `placeholder:"URL" help:"DynamoDB's address, such as http://127.0.0.1:8000. Default: AWS_ENDPOINT_URL_DYNAMODB, or AWS itself."`
	Region   string `placeholder:"NAME" help:"The table's region. Default: as the AWS CLI finds it."`

	region  string // the table's region; open sets it
	address string // the table's endpoint, if it is not AWS's own; open sets it
}

// validate refuses flags that would have no effect or a surprising one.
func (f *storeFlags) validate() error {
	if f.Store == "memory" && (f.Endpoint != "" || f.Region != "") {
		return errors.New("--endpoint and --region go with --store dynamodb")
	}
	return nil
}

func (f *tableFlags) validate() error {
	if u, err := url.Parse(f.Endpoint); f.Endpoint != "" && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
		return input.Invalid("--endpoint", input.Show(f.Endpoint), "a URL such as http://127.0.0.1:8000")
	}
	return nil
}

// where names the table that open opened: its name, region and address.
func (f *tableFlags) where() string {
	where := fmt.Sprintf("the table %s in %s", f.Table, f.region)
	if f.address != "" {
		where += " at " + f.address
	}
	return where
}
