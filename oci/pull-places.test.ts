import { expect, test } from 'vitest';
import { pullPlaces } from './pull-places.ts';
import { readRegistriesConf } from './registries-conf.ts';

function confOf(text: string) {
  const read = readRegistriesConf(text);
  if (!read.ok) throw new Error(read.why);
  return read.conf;
}

const conf = confOf(`
[[registry]]
location = "q.io"
[[registry.mirror]]
location = "both.io/q"
[[registry.mirror]]
location = "digests.io"
pull-from-mirror = "digest-only"
[[registry.mirror]]
location = "tags.io"
pull-from-mirror = "tag-only"
insecure = true
[[registry.mirror]]
location = "bad.io/q"

[[registry]]
location = "q.io/own"

[[registry]]
prefix = "*.example.org"
insecure = true
[[registry.mirror]]
location = "m.io"

[[registry]]
prefix = "moved.io"
location = "new.io/moved"

[[registry]]
location = "one.io/x"
[[registry.mirror]]
location = "m.io"

[[registry]]
location = "bad.io"
blocked = true
`);

test.each([
  ['q.io/x', 'digest', ['both.io/q/x', 'digests.io/x', 'q.io/x']],
  ['q.io/x', 'tag', ['both.io/q/x', 'tags.io/x (insecure)', 'q.io/x']],
  ['q.io:5000/x', 'digest', []],
  ['q.io/own/x', 'tag', ['q.io/own/x']],
  ['q.io/owner', 'digest', ['both.io/q/owner', 'digests.io/owner', 'q.io/owner']],
  ['a.example.org:5000/x', 'tag', ['m.io:5000/x', 'a.example.org:5000/x (insecure)']],
  ['q.eu/a.example.org', 'tag', ['q.eu/a.example.org']],
  ['moved.io/x', 'tag', ['new.io/moved/x']],
  ['bad.io/x', 'digest', []],
  ['q.io/own', 'tag', ['q.io/own']],
  ['one.io/x', 'digest', []],
  ['one.io/x/y', 'digest', ['m.io/y', 'one.io/x/y']],
  ['other.io/x', 'digest', ['other.io/x']],
] as const)('%s by %s comes from %j', (repository, kind, expected) => {
  expect(pullPlaces(conf, repository, kind)).toEqual(expected);
});
