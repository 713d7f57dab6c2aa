package env

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// given has the ports that FreePort has returned: the caller may not listen yet
// when the next port is requested.
var given sync.Map

// FreePort returns a free port of the loopback interface, for a program that
// cannot pick one itself. It returns each port only once. The ports are below
// those that Linux gives to outgoing connections (32768 and above): such a
// connection could otherwise take the port before the program listens, or while
// it is restarted.
func FreePort(ctx context.Context) (int32, error) {
	for range 1000 {
		port := 10000 + rand.Int32N(22000)
		if _, taken := given.LoadOrStore(port, true); taken {
			continue
		}
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if errors.Is(err, syscall.EADDRINUSE) {
			continue
		}
		if err != nil {
			return 0, fmt.Errorf("find a free port: %w", err)
		}
		return port, l.Close()
	}
	return 0, errors.New("find a free port: all that were tried are in use")
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
