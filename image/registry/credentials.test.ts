import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { type Credentials, credentialsFor, parseAuthFile } from './credentials.ts';

const auth = (text: string) => Buffer.from(text).toString('base64');
const read = (auths: object) => parseAuthFile(JSON.stringify({ auths }));

describe('an auth file', () => {
  test.each<[string, string]>([
    ['r.io', 'r.io'],
    ['r.io:5000', 'r.io:5000'],
    ['r.io/', 'r.io'],
    ['https://r.io', 'r.io'],
    ['https://r.io/v1/', 'r.io'],
    ['http://r.io:5000/v2/', 'r.io:5000'],
    ['r.io/v1/', 'r.io'],
    ['r.io/team/v1', 'r.io/team/v1'],
    ['r.io/team/', 'r.io/team'],
    ['https://index.docker.io/v1/', 'docker.io'],
    ['registry-1.docker.io', 'docker.io'],
  ])('the key %s is for %s', (key, place) => {
    expect([...read({ [key]: { auth: auth('u:p') } }).keys()]).toEqual([place]);
  });

  test.each<[string, object, Credentials | undefined]>([
    ['user and password', { auth: auth('u:p:q') }, { username: 'u', password: 'p:q' }],
    ['a padded password', { auth: auth('u:p\0\0') }, { username: 'u', password: 'p' }],
    ['plain fields', { username: 'u', password: 'p' }, { username: 'u', password: 'p' }],
    ['an identity token', { auth: auth('<token>:'), identitytoken: 't' }, { identityToken: 't' }],
    ['an empty identity token', { auth: auth('u:p'), identitytoken: '' }, { username: 'u', password: 'p' }],
    ['nothing, where a helper has it', {}, undefined],
  ])('has %s', (_name, entry, credentials) => {
    expect(read({ 'r.io': entry }).get('r.io')).toEqual(credentials);
  });

  test('in the older format has no "auths"', () => {
    const text = JSON.stringify({ 'https://r.io/v1/': { auth: auth('u:p'), email: 'e' } });
    expect(parseAuthFile(text).get('r.io')).toEqual({ username: 'u', password: 'p' });
  });

  test.each<[string, string, RegExp]>([
    ['no JSON', 'hunter2', /^registry credentials: not valid JSON; expected/],
    ['no object', '1', /"auths" is missing/],
  ])('that is none says so and shows nothing of itself: %s', (_name, text, why) => {
    expect(() => parseAuthFile(text)).toThrow(why);
    expect(() => parseAuthFile(text)).toThrow(/^(?!.*hunter2)/);
  });
});

test.each([
  ['auth without a colon', auth('hunter2')],
  ['junk', 'hunter2!'],
  ['junk with a colon', 'hunter2: '],
])('an entry that has %s is no reason against the others, and shows nothing of itself', (_name, field) => {
  const auths = read({ 'r.io': { auth: field }, 's.io': { auth: auth('u:p') } });
  expect(credentialsFor(auths, 's.io', 'os')).toEqual({ username: 'u', password: 'p' });
  const entry = credentialsFor(auths, 'r.io', 'os');
  const unreadable = expect.stringMatching(/^registry credentials for r\.io: field "auth" (?!.*hunter2)/);
  expect(entry).toEqual({ unreadable });
});

test('either alphabet of base64 is read', () => {
  const auths = read({ 'r.io': { auth: 'dTpwPz4-' }, 's.io': { auth: 'dTpwPz4+' } });
  const expected = { username: 'u', password: 'p?>>' };
  expect([...auths.values()]).toEqual([expected, expected]);
});

describe('for a repository', () => {
  const user = (username: string) => ({ auth: auth(`${username}:p`) });
  const auths = read({
    'r.io': user('all'),
    'r.io/team': user('team'),
    'r.io/team/os': user('os'),
    'r.io:5000': user('port'),
  });
  test.each([
    ['r.io', 'team/os', 'os'],
    ['r.io', 'team/os/x', 'os'],
    ['r.io', 'team/osx', 'team'],
    ['r.io', 'team', 'team'],
    ['r.io', 'teams/os', 'all'],
    ['r.io:5000', 'team/os', 'port'],
    ['s.io', 'team/os', undefined],
  ])('%s/%s those of the longest beginning count: %s', (registry, repository, username) => {
    expect(credentialsFor(auths, registry, repository)).toEqual(
      username === undefined ? undefined : { username, password: 'p' },
    );
  });

  test('credentials are never those of a place that the repository is not in', () => {
    const part = fc.constantFrom('a', 'b', 'ab');
    const path = fc.array(part, { minLength: 1, maxLength: 3 }).map((parts) => parts.join('/'));
    const keys = fc.uniqueArray(
      path.map((rest) => `r.io/${rest}`),
      { maxLength: 5 },
    );
    fc.assert(
      fc.property(keys, path, (places, repository) => {
        const known = new Map(places.map((place) => [place, { username: place, password: '' }]));
        const within = places.filter((place) => `r.io/${repository}/`.startsWith(`${place}/`));
        const longest = within.sort((a, b) => b.length - a.length)[0];
        const found = credentialsFor(known, 'r.io', repository);
        expect(found).toEqual(longest === undefined ? undefined : { username: longest, password: '' });
      }),
    );
  });
});
