package cache

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"time"

	apiextensionsv1client "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// clients are the clients of one API server. They share connections.
type clients struct {
	core        rest.Interface
	gateway     map[schema.GroupVersion]rest.Interface
	definitions rest.Interface
	policies    dynamic.Interface
	metadata    metadata.Interface
	discovery   clientdiscovery.DiscoveryInterface
}

const (
	dialTimeout = 3 * time.Second
	keepAlive   = 15 * time.Second
)

// newClients returns clients with the given request timeout. A timeout of 0 means none,
// as watches need; these clients do not retry requests that the API server rejects.
func newClients(cfg *rest.Config, timeout time.Duration) (*clients, error) {
	cfg = rest.CopyConfig(cfg)
	cfg.Timeout = timeout
	// The API server limits requests itself (priority and fairness). A client-side
	// limit would only delay the reads that a pending write depends on.
	cfg.QPS, cfg.RateLimiter = -1, nil
	if cfg.Dial == nil {
		// The default dial timeout of 30 s delays the recovery of a watch if one
		// address of the API server is not reachable.
		cfg.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}).DialContext
	}
	if timeout == 0 {
		cfg.Wrap(func(next http.RoundTripper) http.RoundTripper { return noRetryTransport{next} })
	}
	cfg.WarningHandlerWithContext = rest.NoWarnings{} // deprecation warnings concern the owner of the CRD
	httpClient, err := rest.HTTPClientFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	c := &clients{}
	if err := c.connect(cfg, httpClient); err != nil {
		return nil, fmt.Errorf("create client for %s: %w", cfg.Host, err)
	}
	return c, nil
}

// noRetryTransport removes Retry-After headers from responses. With the header,
// client-go retries a request up to ten times and waits as long as the header says, for
// example 30 s if a resource cannot be converted; meanwhile the failure would not be
// reported.
type noRetryTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t noRetryTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if err == nil {
		response.Header.Del("Retry-After")
	}
	return response, err
}

func (c *clients) connect(cfg *rest.Config, httpClient *http.Client) error {
	binary := rest.CopyConfig(cfg) // custom resources do not support protobuf
	binary.ContentType = runtime.ContentTypeProtobuf
	binary.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	core, err := corev1client.NewForConfigAndClient(binary, httpClient)
	if err != nil {
		return err
	}
	definitions, err := apiextensionsv1client.NewForConfigAndClient(binary, httpClient)
	if err != nil {
		return err
	}
	c.core, c.definitions = core.RESTClient(), definitions.RESTClient()
	if c.gateway, err = gatewayClients(cfg, httpClient); err != nil {
		return err
	}
	if c.policies, err = dynamic.NewForConfigAndClient(cfg, httpClient); err != nil {
		return err
	}
	if c.metadata, err = metadata.NewForConfigAndClient(cfg, httpClient); err != nil {
		return err
	}
	c.discovery, err = clientdiscovery.NewDiscoveryClientForConfigAndClient(cfg, httpClient)
	return err
}

// listWatch lists and watches all objects of a builtin kind in one of its versions.
func (c *clients) listWatch(b *builtin, version string) *cache.ListWatch {
	if b.example == nil {
		return c.policiesListWatch(schema.GroupVersionResource{Group: b.kind.Group, Version: version, Resource: b.resource})
	}
	return listWatchAll(c.clientFor(b, version), b.resource)
}

func (c *clients) clientFor(b *builtin, version string) rest.Interface {
	if gw := c.gateway[schema.GroupVersion{Group: b.kind.Group, Version: version}]; gw != nil {
		return gw
	}
	return c.core
}

func (c *clients) definitionsListWatch() *cache.ListWatch {
	return listWatchAll(c.definitions, sourceDefinitions)
}

func listWatchAll(client rest.Interface, resource string) *cache.ListWatch {
	return cache.NewListWatchFromClient(client, resource, metav1.NamespaceAll, fields.Everything())
}

// policiesListWatch lists and watches all objects of a resource.
func (c *clients) policiesListWatch(r schema.GroupVersionResource) *cache.ListWatch {
	client := c.policies.Resource(r)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			list, err := client.List(ctx, o)
			if err != nil {
				return nil, err
			}
			return list, nil
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			return client.Watch(ctx, o)
		},
	}
}
