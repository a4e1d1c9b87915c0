import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type BaseEntry, resolveInBase } from './base-tree.ts';

const directory: BaseEntry = { kind: 'directory', mode: 0o755, uid: 0, gid: 0, isEmpty: false };
const link = (target: string): BaseEntry => ({ kind: 'link', target });
const of = (entries: Readonly<Record<string, BaseEntry>>) => ({ at: (path: string) => entries[path] });

describe('a path is resolved as in a root of its own', () => {
  test.each<[string, Readonly<Record<string, BaseEntry>>, string, string]>([
    ['without links', { '/etc': directory }, '/etc/a', '/etc/a'],
    [
      'by a relative link',
      { '/etc': directory, '/etc/ssl': link('pki/tls') },
      '/etc/ssl/a',
      '/etc/pki/tls/a',
    ],
    ['by an absolute link', { '/bin': link('/usr/bin'), '/usr/bin': directory }, '/bin/a', '/usr/bin/a'],
    [
      'by one link to another',
      { '/sbin': link('usr/sbin'), '/usr': directory, '/usr/sbin': link('bin') },
      '/sbin/a',
      '/usr/bin/a',
    ],
    ['not out of the root', { '/a': link('../../../b') }, '/a/x', '/b/x'],
    ['by the root itself', { '/a': link('/') }, '/a/etc/x', '/etc/x'],
    ['but for its own last name', { '/a': link('b') }, '/a', '/a'],
    ['by what is missing', { '/a': link('var/none') }, '/a/x/y', '/var/none/x/y'],
  ])('%s', (_what, entries, path, real) => {
    expect(resolveInBase(of(entries), path)).toMatchObject({ kind: 'place', path: real });
  });

  test('a directory that the layer has counts, whatever the base has', () => {
    const base = of({ '/etc/ssl/certs': link('../pki/certs'), '/etc/f': { kind: 'file' } });
    const made = new Set(['/etc/ssl/certs', '/etc/f']);
    for (const path of ['/etc/ssl/certs/a', '/etc/f/a']) {
      expect(resolveInBase(base, path, made)).toEqual({ kind: 'place', path, through: [] });
    }
  });

  test('a file, a circle and a way back from nowhere are told', () => {
    const base = of({
      '/etc': directory,
      '/etc/f': { kind: 'file' },
      '/l': link('m'),
      '/m': link('/l'),
      '/away': link('none/../etc'),
    });
    expect(resolveInBase(base, '/etc/f/a')).toEqual({ kind: 'blocked', by: '/etc/f' });
    expect(resolveInBase(base, '/l/a')).toMatchObject({ kind: 'loop' });
    expect(resolveInBase(base, '/away/a')).toEqual({ kind: 'dangling', link: '/away' });
  });

  test('40 links are followed, and no more', () => {
    const chain = (links: number) =>
      of({
        ...Object.fromEntries(
          Array.from({ length: links }, (_, index) => [`/l${index}`, link(`l${index + 1}`)]),
        ),
        [`/l${links}`]: directory,
      });
    expect(resolveInBase(chain(40), '/l0/x').kind).toBe('place');
    expect(resolveInBase(chain(41), '/l0/x').kind).toBe('loop');
  });

  test('a place has no link on its way', () => {
    const name = fc.constantFrom('a', 'b', 'c');
    const path = fc.array(name, { minLength: 1, maxLength: 3 }).map((parts) => `/${parts.join('/')}`);
    const target = fc
      .tuple(fc.constantFrom('', '/', '../'), path)
      .map(([start, rest]) => `${start}${rest.slice(1)}`);
    const entries = fc.dictionary(path, fc.oneof(fc.constant(directory), target.map(link)));
    fc.assert(
      fc.property(entries, path, (tree, asked) => {
        const base = of(tree);
        const resolved = resolveInBase(base, asked);
        if (resolved.kind !== 'place') return;
        const parents = resolved.path.split('/').slice(1, -1);
        const ways = parents.map((_, index) => `/${parents.slice(0, index + 1).join('/')}`);
        expect(ways.filter((way) => base.at(way)?.kind === 'link')).toEqual([]);
      }),
    );
  });
});
