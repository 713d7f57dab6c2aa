package v1alpha1

// KindRenderedLimitsList is the kind of RenderedLimitsList.
const KindRenderedLimitsList = "RenderedLimitsList"

// RenderedLimitsList is the output of the command render: the limits that are bound to
// rules of routes, for each gateway.
type RenderedLimitsList struct {
	TypeMeta `json:",inline"`
	Items    []RenderedLimits `json:"items"`
}

// RenderedLimits has the two documents of one gateway: its actions, and the limits of
// the rate limit service. The fields have the names and the order of the RFC.
type RenderedLimits struct {
	PolicyKind PolicyKind `json:"policyKind"`
	// Gateway is the gateway that receives the requests. In a mesh, Service is set
	// instead.
	Gateway        *Ref            `json:"gateway,omitempty"`
	Service        *Ref            `json:"service,omitempty"`
	GatewayActions []GatewayAction `json:"gateway_actions"`
	Limits         []RenderedLimit `json:"limits"`
}

// GatewayAction is the action of a gateway for the requests of the rules that a limit
// is bound to.
type GatewayAction struct {
	// Rules lists the matches of which a request must meet at least one.
	Rules []GatewayRule `json:"rules"`
	// Configurations are the entries of the rate limit descriptor for such a request,
	// in order.
	Configurations []DescriptorAction `json:"configurations"`
}

// GatewayRule is one match of a rule of a route.
type GatewayRule struct {
	// Paths are prefixes, which end in *, regular expressions, which start with ~,
	// or exact paths.
	Paths   []string `json:"paths"`
	Methods []string `json:"methods,omitempty"`
	// Hosts are the hostnames of the requests. It is absent for any.
	Hosts       []string       `json:"hosts,omitempty"`
	Headers     []GatewayValue `json:"headers,omitempty"`
	QueryParams []GatewayValue `json:"query_params,omitempty"`
}

// GatewayValue is a header or query parameter of a match.
type GatewayValue struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Type is RegularExpression. It is absent for Exact.
	Type string `json:"type,omitempty"`
}

// DescriptorAction is an action of Envoy's rate limit filter. Exactly one field is set.
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

// MetadataKey is the location of a value in dynamic metadata.
type MetadataKey struct {
	// Key is the name of the filter that wrote it.
	Key  string            `json:"key"`
	Path []MetadataSegment `json:"path"`
}

// MetadataSegment is one step of a path in dynamic metadata.
type MetadataSegment struct {
	Segment MetadataName `json:"segment"`
}

// MetadataName is the name of a field.
type MetadataName struct {
	Key string `json:"key"`
}

// HeaderAction adds the value of a header, or of a pseudo-header of HTTP/2.
type HeaderAction struct {
	DescriptorKey string `json:"descriptor_key"`
	HeaderName    string `json:"header_name"`
}

// ClusterAction adds the source or destination cluster.
type ClusterAction struct {
	DescriptorKey string `json:"descriptor_key"`
}

// RenderedLimit is one rate of a limit, in the format of the rate limit service.
type RenderedLimit struct {
	// Conditions must all be true for a request to be counted.
	Conditions []string `json:"conditions"`
	// Variables are counted separately for each of their values.
	Variables []string `json:"variables,omitempty"`
	// MaxValue is the maximum number of requests in a period of Seconds.
	MaxValue int64 `json:"max_value"`
	Seconds  int64 `json:"seconds"`
	// Namespace is the namespace of the counters: namespace/name of the gateway, or
	// in a mesh of the Service.
	Namespace string `json:"namespace"`
}
