package v1alpha1

// KindRenderedLimitsList is the kind of RenderedLimitsList.
const KindRenderedLimitsList = "RenderedLimitsList"

// RenderedLimitsList is what `render` answers: what limits that bind to rules of
// routes come to, at each gateway.
type RenderedLimitsList struct {
	TypeMeta `json:",inline"`
	Items    []RenderedLimits `json:"items"`
}

// RenderedLimits is the two documents of one gateway: what it does to requests, and
// what the service that counts them is told. Fields of the documents are spelled as
// they are in there, and in that order.
type RenderedLimits struct {
	PolicyKind PolicyKind `json:"policyKind"`
	// Gateway, or in a mesh the Service, through which the requests come.
	Gateway        *Ref            `json:"gateway,omitempty"`
	Service        *Ref            `json:"service,omitempty"`
	GatewayActions []GatewayAction `json:"gateway_actions"`
	Limits         []RenderedLimit `json:"limits"`
}

// GatewayAction is what a limit makes the gateway do with the requests of the rules
// that it is bound to.
type GatewayAction struct {
	// Rules, any of which a request has to be for.
	Rules []GatewayRule `json:"rules"`
	// Configurations are the entries of the descriptor that is sent for such a
	// request, in order.
	Configurations []DescriptorAction `json:"configurations"`
}

// GatewayRule is one match of a rule of a route.
type GatewayRule struct {
	// Paths: a prefix ends in *, a regular expression starts with ~, any other is
	// the whole path.
	Paths   []string `json:"paths"`
	Methods []string `json:"methods,omitempty"`
	// Hosts that requests are for, absent for any.
	Hosts       []string       `json:"hosts,omitempty"`
	Headers     []GatewayValue `json:"headers,omitempty"`
	QueryParams []GatewayValue `json:"query_params,omitempty"`
}

// GatewayValue is a header or query parameter of a match.
type GatewayValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Type is RegularExpression, or absent for Exact.
	Type string `json:"type,omitempty"`
}

// DescriptorAction is an action of Envoy's rate limit filter. One field is set.
type DescriptorAction struct {
	GenericKey         *GenericKey     `json:"generic_key,omitempty"`
	Metadata           *MetadataAction `json:"metadata,omitempty"`
	RequestHeaders     *HeaderAction   `json:"request_headers,omitempty"`
	SourceCluster      *ClusterAction  `json:"source_cluster,omitempty"`
	DestinationCluster *ClusterAction  `json:"destination_cluster,omitempty"`
}

// GenericKey adds a fixed value.
type GenericKey struct {
	DescriptorKey   string `json:"descriptor_key"`
	DescriptorValue string `json:"descriptor_value"`
}

// MetadataAction adds a value of the request's dynamic metadata.
type MetadataAction struct {
	DescriptorKey string      `json:"descriptor_key"`
	MetadataKey   MetadataKey `json:"metadata_key"`
}

// MetadataKey is where a value of dynamic metadata is.
type MetadataKey struct {
	// Key names the filter that wrote it.
	Key  string            `json:"key"`
	Path []MetadataSegment `json:"path"`
}

// MetadataSegment is one step of a path in dynamic metadata.
type MetadataSegment struct {
	Segment MetadataName `json:"segment"`
}

// MetadataName names a field.
type MetadataName struct {
	Key string `json:"key"`
}

// HeaderAction adds the value of a header, or of a pseudo-header of HTTP/2.
type HeaderAction struct {
	DescriptorKey string `json:"descriptor_key"`
	HeaderName    string `json:"header_name"`
}

// ClusterAction adds what is known of one side of the connection.
type ClusterAction struct {
	DescriptorKey string `json:"descriptor_key"`
}

// RenderedLimit is one rate of a limit, as the service that counts reads it.
type RenderedLimit struct {
	// Conditions, all of which hold for requests that count.
	Conditions []string `json:"conditions"`
	// Variables whose values are counted apart.
	Variables []string `json:"variables,omitempty"`
	// MaxValue is the most requests in that many Seconds.
	MaxValue int64 `json:"max_value"`
	Seconds  int64 `json:"seconds"`
	// Namespace of the counters: namespace/name of the gateway, or in a mesh of
	// the Service.
	Namespace string `json:"namespace"`
}
