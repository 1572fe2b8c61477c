package idmap

import (
	"cmp"
	"context"
	"errors"

	"portico/mapping"
	"portico/upstream"
	"portico/upstream/switchover"
)

// Locator is a switchover.Locator over that of one of two trackers. An object that the tracker does not have under any known id is absent
// there.
type Locator struct {
	m     *Map
	side  Side
	inner switchover.Locator
}

// Locator decorates the locator of one side.
func (m *Map) Locator(side Side, inner switchover.Locator) *Locator { return &Locator{m, side, inner} }

// Bug implements switchover.Locator.
func (l *Locator) Bug(ctx context.Context, caller upstream.Caller, named string) (mapping.Place, error) {
	request, err := l.m.translate(ctx, l.side, func(t *translation) { t.text(Bug, &named) })
	if err != nil {
		return mapping.Place{}, exceptAbsent(err)
	}
	place, err := l.inner.Bug(ctx, caller, named)
	if err != nil {
		return place, request.message(err)
	}
	l.name(product, &place.Product)
	l.name(component, &place.Component)
	place.Bug, err = l.client(ctx, place.Bug)
	return place, err
}

// AttachmentBug implements switchover.Locator.
func (l *Locator) AttachmentBug(ctx context.Context, caller upstream.Caller, id int64) (int64, error) {
	request, err := l.m.translate(ctx, l.side, func(t *translation) { t.id(Attachment, &id) })
	if err != nil {
		return 0, exceptAbsent(err)
	}
	bug, err := l.inner.AttachmentBug(ctx, caller, id)
	if err != nil || bug == 0 {
		return bug, request.message(err)
	}
	return l.client(ctx, bug)
}

// Native is the id at the side of an object that clients know by an id.
func (l *Locator) Native(ctx context.Context, kind Kind, client int64) (int64, error) {
	natives, err := l.m.natives(ctx, l.side, []ref{{kind, client}})
	return first(natives), err
}

// FlagTypePlaces implements switchover.Locator.
func (l *Locator) FlagTypePlaces(
	ctx context.Context, caller upstream.Caller, ids []int64, names []string,
) (products []string, places []mapping.Scopes, err error) {
	natives := make([]int64, len(ids))
	for i, id := range ids {
		native, err := l.Native(ctx, FlagType, id)
		if err = exceptAbsent(err); err != nil {
			return nil, nil, err
		}
		natives[i] = cmp.Or(native, -1) // which no flag type has
	}
	names = each((&translation{Map: l.m, side: l.side}).name, FlagType, names)
	products, places, err = l.inner.FlagTypePlaces(ctx, caller, natives, names)
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

// first is the first of the ids, 0 where there is none.
func first(ids []int64) int64 {
	if len(ids) == 0 {
		return 0
	}
	return ids[0]
}

func (l *Locator) client(ctx context.Context, bug int64) (int64, error) {
	clients, err := l.m.clients(ctx, l.side, []ref{{Bug, bug}})
	return first(clients), err
}

func (l *Locator) name(kind Kind, name *string) { *name = l.m.names.client(l.side, kind, *name) }
