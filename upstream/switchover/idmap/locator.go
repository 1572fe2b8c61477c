package idmap

import (
	"context"
	"errors"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/switchover"
)

// locator is a switchover.Locator over that of one of two trackers. An object that the tracker does not have under any known id is absent
// there.
type locator struct {
	m     *Map
	side  Side
	inner switchover.Locator
}

// Locator decorates the locator of the tracker with a name.
func (m *Map) Locator(name string, inner switchover.Locator) switchover.Locator {
	if m == nil {
		return inner
	}
	return &locator{m, m.sideOf(name), inner}
}

// Bug implements switchover.Locator.
func (l *locator) Bug(ctx context.Context, caller upstream.Caller, named string) (place mapping.Place, err error) {
	err = l.ask(ctx, func(t *translation) { t.text(Bug, &named) }, &place.Bug, func() error {
		place, err = l.inner.Bug(ctx, caller, named)
		return err
	})
	l.name(product, &place.Product)
	l.name(component, &place.Component)
	return place, err
}

// AttachmentBug implements switchover.Locator.
func (l *locator) AttachmentBug(ctx context.Context, caller upstream.Caller, id int64) (bug int64, err error) {
	err = l.ask(ctx, func(t *translation) { t.id(Attachment, &id) }, &bug, func() error {
		bug, err = l.inner.AttachmentBug(ctx, caller, id)
		return err
	})
	return bug, err
}

// ask translates a question that visit visits, and the bug that the tracker names. Nothing is asked where the object is absent.
func (l *locator) ask(ctx context.Context, visit func(*translation), bug *int64, ask func() error) error {
	request, err := l.m.translate(ctx, l.side, visit)
	if err != nil {
		return exceptAbsent(err)
	}
	if err := ask(); err != nil || *bug == 0 {
		return request.message(err)
	}
	clients, err := l.m.clients(ctx, l.side, []ref{{Bug, *bug}})
	if err == nil {
		*bug = clients[0]
	}
	return err
}

// Native is the id at a tracker of an object that clients know by an id.
func (m *Map) Native(ctx context.Context, tracker string, kind Kind, client int64) (int64, error) {
	if m == nil {
		return client, nil
	}
	_, err := m.translate(ctx, m.sideOf(tracker), func(t *translation) { t.id(kind, &client) })
	return client, err
}

// FlagTypePlaces implements switchover.Locator.
func (l *locator) FlagTypePlaces(
	ctx context.Context, caller upstream.Caller, ids []int64, names []string,
) (products []string, places []mapping.Scopes, err error) {
	_, err = l.m.translate(ctx, l.side, func(t *translation) { ids, names = each(t.id, FlagType, ids), each(t.name, FlagType, names) })
	if err := exceptAbsent(err); err != nil {
		return nil, nil, err
	}
	products, places, err = l.inner.FlagTypePlaces(ctx, caller, ids, names)
	products = each(l.name, product, products)
	for _, scopes := range places {
		for i := range scopes {
			l.name(product, &scopes[i].Product)
			scopes[i].Components = each(l.name, component, scopes[i].Components)
		}
	}
	return products, places, err
}

// exceptAbsent drops the error of an object that a side does not have.
func exceptAbsent(err error) error {
	if failed, ok := errors.AsType[*mapping.Error](err); ok && failed.Status < 500 {
		return nil
	}
	return err
}

func (l *locator) name(kind Kind, name *string) { *name = l.m.names.client(l.side, kind, *name) }
