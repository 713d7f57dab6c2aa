package inprocess

import (
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	clientdiscovery "k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
)

// discovery caches the discovery documents for all commands of a client. The
// program caches them in files for some hours.
type discovery struct {
	client clientdiscovery.CachedDiscoveryInterface
	mapper meta.ResettableRESTMapper
}

func newDiscovery(config *rest.Config) (*discovery, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	client, err := clientdiscovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a discovery client: %w", err)
	}
	cached := memory.NewMemCacheClient(client)
	return &discovery{client: cached, mapper: restmapper.NewDeferredDiscoveryRESTMapper(cached)}, nil
}

// getter has the configuration of a command's flags, and the shared discovery.
type getter struct {
	*genericclioptions.ConfigFlags

	discovery *discovery
}

// ToDiscoveryClient implements genericclioptions.RESTClientGetter.
func (g *getter) ToDiscoveryClient() (clientdiscovery.CachedDiscoveryInterface, error) {
	return g.discovery.client, nil
}

// ToRESTMapper implements genericclioptions.RESTClientGetter.
func (g *getter) ToRESTMapper() (meta.RESTMapper, error) {
	mapper := &fresh{ResettableRESTMapper: g.discovery.mapper}
	return restmapper.NewShortcutExpander(mapper, g.discovery.client, nil), nil
}

// fresh reads the discovery documents again, once per command, for an unknown
// kind: CRDs are created and deleted while tests run.
type fresh struct {
	meta.ResettableRESTMapper

	once sync.Once
}

func (f *fresh) again(err error) bool {
	again := false
	if meta.IsNoMatchError(err) {
		f.once.Do(func() {
			f.Reset()
			again = true
		})
	}
	return again
}

// KindFor implements meta.RESTMapper.
func (f *fresh) KindFor(r schema.GroupVersionResource) (schema.GroupVersionKind, error) {
	kind, err := f.ResettableRESTMapper.KindFor(r)
	if f.again(err) {
		return f.ResettableRESTMapper.KindFor(r)
	}
	return kind, err
}

// ResourceFor implements meta.RESTMapper.
func (f *fresh) ResourceFor(r schema.GroupVersionResource) (schema.GroupVersionResource, error) {
	resource, err := f.ResettableRESTMapper.ResourceFor(r)
	if f.again(err) {
		return f.ResettableRESTMapper.ResourceFor(r)
	}
	return resource, err
}

// RESTMapping implements meta.RESTMapper.
func (f *fresh) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := f.ResettableRESTMapper.RESTMapping(kind, versions...)
	if f.again(err) {
		return f.ResettableRESTMapper.RESTMapping(kind, versions...)
	}
	return mapping, err
}
