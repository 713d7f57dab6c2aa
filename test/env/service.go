package env

import (
	"context"
	"fmt"
	"net"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// given has the ports that FreePort has returned: the caller may not listen yet
// when the next port is requested.
var given sync.Map

// FreePort returns a free port of the loopback interface, for a program that
// cannot pick one itself. It returns each port only once.
func FreePort(ctx context.Context) (int32, error) {
	for {
		port, err := freePort(ctx)
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		if _, taken := given.LoadOrStore(port, true); !taken {
			return port, nil
		}
	}
}

func freePort(ctx context.Context) (int32, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	return int32(port), l.Close()
}

// RouteService makes the Service namespace/name point to the loopback interface,
// and creates the namespace if necessary. The API server resolves a Service of
// this type to its external name and the port in the *webhook configuration*, so
// that must be the port that the server listens on. The server receives the same
// as behind a Service in a cluster: TLS with SNI name.namespace.svc.
func (e *Env) RouteService(ctx context.Context, namespace, name string, port int32) error {
	client, err := kubernetes.NewForConfig(e.Config)
	if err != nil {
		return fmt.Errorf("route service %s/%s: %w", namespace, name, err)
	}
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}
	_, err = client.CoreV1().Namespaces().Create(ctx, ns, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("route service %s/%s: %w", namespace, name, err)
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name},
		Spec: corev1.ServiceSpec{
			Type:         corev1.ServiceTypeExternalName,
			ExternalName: "localhost",
			Ports:        []corev1.ServicePort{{Name: "webhook", Port: port}},
		},
	}
	if err := replaceService(ctx, client, service); err != nil {
		return fmt.Errorf("route service %s/%s: %w", namespace, name, err)
	}
	return nil
}

// replaceService replaces a Service of the same name: its type cannot always be
// changed in place. An equal one is kept, so that no call is lost.
func replaceService(ctx context.Context, client kubernetes.Interface, service *corev1.Service) error {
	services := client.CoreV1().Services(service.Namespace)
	old, err := services.Get(ctx, service.Name, metav1.GetOptions{})
	if err == nil && old.Spec.ExternalName == service.Spec.ExternalName {
		old.Spec.Ports = service.Spec.Ports
		_, err = services.Update(ctx, old, metav1.UpdateOptions{})
		return err
	}
	err = services.Delete(ctx, service.Name, metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	_, err = services.Create(ctx, service, metav1.CreateOptions{})
	return err
}
