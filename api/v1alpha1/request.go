package v1alpha1

// ServedRequest is where a request goes: the gateways that it can come in by, or the
// Service of a mesh.
type ServedRequest struct {
	// Request is the request as it was read.
	Request string `json:"request"`
	// Served is true if some rule of some route serves it.
	Served bool `json:"served"`
	// Message is set if there is nowhere to look: no Gateway.
	Message string `json:"message,omitempty"`
	// At has one element for each gateway, and for each of its ports if that is
	// assumed: those that serve the request first.
	At []RequestAt `json:"at"`
}

// RequestAt is where a request goes at one gateway or Service.
type RequestAt struct {
	// Path goes as far as the request: to the rule that serves it, to the listener if
	// none does, or to the gateway if no listener accepts it.
	Path   []PathElement `json:"path"`
	Served bool          `json:"served"`
	// Hostname is the one by which the rule is found: the more specific one of the
	// route's and the listener's. It is absent for any.
	Hostname string `json:"hostname,omitempty"`
	// Match is the match of the rule that the request meets.
	Match string `json:"match,omitempty"`
	// Message says why nothing serves the request, and what to do.
	Message     string              `json:"message,omitempty"`
	Assumptions []RequestAssumption `json:"assumptions,omitempty"`
	// Candidates are all rules that the request meets, in the order of precedence, in
	// the output of the command explain.
	Candidates []RequestCandidate `json:"candidates,omitempty"`
}

// RequestCandidate is a rule that a request meets.
type RequestCandidate struct {
	Rule     PathElement `json:"rule"`
	Hostname string      `json:"hostname,omitempty"`
	Match    string      `json:"match,omitempty"`
	// After is what decides that another rule precedes this one. It is absent for the
	// rule that serves the request.
	After Precedence `json:"after,omitempty"`
}

// Precedence is a criterion by which one rule of a route precedes another.
type Precedence string

// The criteria, in the order in which they are compared.
const (
	ByHostname          Precedence = "Hostname"
	ByRegularExpression Precedence = "RegularExpression"
	ByExactPath         Precedence = "ExactPath"
	ByLongerPath        Precedence = "LongerPath"
	ByGRPCService       Precedence = "GRPCService"
	ByGRPCMethod        Precedence = "GRPCMethod"
	ByMethod            Precedence = "Method"
	ByHeaders           Precedence = "Headers"
	ByQueryParams       Precedence = "QueryParams"
	ByOlderRoute        Precedence = "OlderRoute"
	ByName              Precedence = "Name"
	ByEarlierRule       Precedence = "EarlierRule"
	ByListener          Precedence = "Listener"
)

// RequestAssumption is what the answer depends on, and cannot be read from the objects.
type RequestAssumption struct {
	Code    AssumptionCode `json:"code"`
	Message string         `json:"message"`
}

// AssumptionCode identifies an assumption.
type AssumptionCode string

// The assumptions.
const (
	AssumePort               AssumptionCode = "Port"
	AssumeTLSTerminated      AssumptionCode = "TLSTerminated"
	AssumeServerName         AssumptionCode = "ServerName"
	AssumeListenersIsolated  AssumptionCode = "ListenersIsolated"
	AssumeRouteKinds         AssumptionCode = "RouteKinds"
	AssumeRegularExpressions AssumptionCode = "RegularExpressions"
	AssumeCreationTime       AssumptionCode = "CreationTime"
	AssumePathUnchanged      AssumptionCode = "PathUnchanged"
	AssumeRepeatedValues     AssumptionCode = "RepeatedValues"
	AssumeConsumerRoutes     AssumptionCode = "ConsumerRoutes"
)
