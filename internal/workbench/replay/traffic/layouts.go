package traffic

// A form names the fields of a record that make a request. Fields have the names
// that the log's documentation gives them. In JSON, a dot leads into an object.
type form struct {
	name string // with its article, such as "an ALB log"; empty: the caller's own CSV or JSON

	line      string   // text: the fields of a line, quoted and in brackets as they are there
	separator byte     // text: what separates them; 0: spaces
	braces    bool     // text: a field in braces can be missing, and is skipped
	objects   []string // JSON: names that each object has; | separates alternatives

	times     [][]string // the first ones that a record has count; a date and a time are joined
	users     []string   // the first one that a record has is the user
	addresses []string   // if it has none of the users, the first one of these
	method    string     // empty: the path is a whole request line, such as POST /posts HTTP/1.1
	paths     []string   // the first one that a record has
	utc       bool       // times without a zone are UTC by definition
	headed    bool       // a line #Fields: names the fields
}

// texts are the known logs of lines. The first one that fits counts.
//
// A line can begin with words of another program, such as the time and the host of
// syslog. So there is no form of its own for Apache's format vhost_combined.
var texts = []*form{
	{
		name: "an ALB log",
		line: `type time elb client:port target:port request_processing_time target_processing_time response_processing_time ` +
			`elb_status_code target_status_code received_bytes sent_bytes "request" "user_agent" ssl_cipher ssl_protocol ` +
			`target_group_arn "trace_id" "domain_name" "chosen_cert_arn" matched_rule_priority request_creation_time ` +
			`"actions_executed" "redirect_url" "error_reason" "target:port_list" "target_status_code_list" "classification" ` +
			`"classification_reason" conn_trace_id "transformed_host" "transformed_uri" "request_transform_status"`,
		times: [][]string{{"time"}}, addresses: []string{"client:port"}, paths: []string{"request"},
	},
	{
		name: "a Classic Load Balancer log",
		line: `time elb client:port backend:port request_processing_time backend_processing_time response_processing_time ` +
			`elb_status_code backend_status_code received_bytes sent_bytes "request" "user_agent" ssl_cipher ssl_protocol`,
		times: [][]string{{"time"}}, addresses: []string{"client:port"}, paths: []string{"request"},
	},
	{
		name: "an S3 log",
		line: `bucket_owner bucket [time] remote_ip requester request_id operation key "request_uri" http_status error_code ` +
			`bytes_sent object_size total_time turn_around_time "referer" "user_agent" version_id host_id signature_version ` +
			`cipher_suite authentication_type host_header tls_version access_point_arn acl_required source_region`,
		times: [][]string{{"time"}}, users: []string{"requester"}, addresses: []string{"remote_ip"}, paths: []string{"request_uri"},
	},
	{
		name: "an HAProxy log", braces: true,
		line: `client_ip:client_port [accept_date] frontend_name backend_name/server_name TR/Tw/Tc/Tr/Ta status_code bytes_read ` +
			`captured_request_cookie captured_response_cookie termination_state actconn/feconn/beconn/srv_conn/retries ` +
			`srv_queue/backend_queue "http_request"`,
		times: [][]string{{"accept_date"}}, addresses: []string{"client_ip:client_port"}, paths: []string{"http_request"},
	},
	{
		name: "an Envoy log",
		line: `[start_time] "request" response_code response_flags bytes_received bytes_sent duration upstream_service_time ` +
			`"x_forwarded_for" "user_agent" "request_id" "authority" "upstream_host"`,
		times: [][]string{{"start_time"}}, addresses: []string{"x_forwarded_for"}, paths: []string{"request"},
	},
	{
		name: "an Istio log",
		line: `[start_time] "request" response_code response_flags response_code_details connection_termination_details ` +
			`"upstream_transport_failure_reason" bytes_received bytes_sent duration upstream_service_time "x_forwarded_for" ` +
			`"user_agent" "request_id" "authority" "upstream_host" upstream_cluster upstream_local_address ` +
			`downstream_local_address downstream_remote_address requested_server_name route_name`,
		times: [][]string{{"start_time"}}, addresses: []string{"x_forwarded_for", "downstream_remote_address"}, paths: []string{"request"},
	},
	{
		name:  "an API Gateway log",
		line:  `ip caller user [requestTime]"request" status responseLength requestId`,
		times: [][]string{{"requestTime"}}, users: []string{"user", "caller"}, addresses: []string{"ip"}, paths: []string{"request"},
	},
	{
		name: "an API Gateway log", separator: ',',
		line:  `ip,caller,user,requestTime,httpMethod,resourcePath,protocol,status,responseLength,requestId`,
		times: [][]string{{"requestTime"}}, users: []string{"user", "caller"}, addresses: []string{"ip"},
		method: "httpMethod", paths: []string{"resourcePath"},
	},
	{
		name: "an API Gateway log", separator: ',', // of an HTTP API
		line:  `ip,requestTime,httpMethod,routeKey,protocol,status,responseLength,requestId`,
		times: [][]string{{"requestTime"}}, addresses: []string{"ip"}, method: "httpMethod", paths: []string{"routeKey"},
	},
	common,
}

// common is what nginx, Apache and Traefik write, alone or with more fields behind:
//
//	192.0.2.7 - alice [05/Jan/2026:12:00:00 +0000] "POST /posts?draft=1 HTTP/1.1" 201 93 "-" "curl/8.5.0"
var common = &form{
	name:  "a log in the common or combined format",
	line:  `remote_addr ident remote_user [time_local] "request" status body_bytes_sent "http_referer" "http_user_agent" "http_x_forwarded_for"`,
	times: [][]string{{"time_local"}}, users: []string{"remote_user"}, addresses: []string{"remote_addr"}, paths: []string{"request"},
}

// objects are the known logs of JSON. The first one that fits counts.
var objects = []*form{
	{
		name: "a CloudFront log", objects: []string{"date|timestamp(ms)", "x-edge-location|c-ip|cs-method"},
		times: w3c.times, users: w3c.users, addresses: w3c.addresses, method: w3c.method, paths: w3c.paths, utc: true,
	},
	{
		name: "an API Gateway log", objects: []string{"requestTime|requestTimeEpoch", "httpMethod|routeKey|resourcePath"},
		times: [][]string{{"requestTimeEpoch"}, {"requestTime"}}, users: []string{"user", "caller"},
		addresses: []string{"ip", "sourceIp"}, method: "httpMethod", paths: []string{"resourcePath", "routeKey", "path"},
	},
	{
		name: "a Caddy log", objects: []string{"request.method", "request.uri"},
		times: [][]string{{"ts"}, {"time"}}, users: []string{"user_id"},
		addresses: []string{"request.client_ip", "request.remote_ip", "request.remote_addr"}, method: "request.method", paths: []string{"request.uri"},
	},
	{
		name: "a Traefik log", objects: []string{"ClientHost|ClientAddr", "RequestMethod"},
		times: [][]string{{"StartUTC"}, {"time"}}, users: []string{"ClientUsername"},
		addresses: []string{"ClientHost", "ClientAddr"}, method: "RequestMethod", paths: []string{"RequestPath"},
	},
	{
		name: "an Envoy log", objects: []string{"start_time", "response_code"},
		times: [][]string{{"start_time"}}, addresses: []string{"x_forwarded_for", "x-forwarded-for", "downstream_remote_address"},
		method: "method", paths: []string{"path", "x-envoy-origin-path"},
	},
	{
		name: "an S3 log", objects: []string{"request_time", "remote_ip", "operation"},
		times: [][]string{{"request_time"}}, users: []string{"requester"}, addresses: []string{"remote_ip"}, paths: []string{"request_uri"},
	},
	{
		name: "an nginx log", objects: []string{"remote_addr", "time_local|time_iso8601|msec"},
		times: [][]string{{"msec"}, {"time_iso8601"}, {"time_local"}}, users: []string{"remote_user"},
		addresses: []string{"remote_addr"}, paths: []string{"request"},
	},
}

// w3c is W3C's extended format. A line #Fields: names the fields.
var w3c = &form{
	name:  "a W3C log",
	times: [][]string{{"timestamp(ms)"}, {"date", "time"}}, users: []string{"cs-username"}, addresses: []string{"c-ip"},
	method: "cs-method", paths: []string{"cs-uri-stem", "cs-uri"}, utc: true, headed: true,
}

// knownLogs names the logs, for an error.
const knownLogs = "ALB, CloudFront, API Gateway, S3, nginx, Apache, Caddy, Traefik, HAProxy, Envoy, W3C"
