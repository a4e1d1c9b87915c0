import { describe, expect, test } from 'vitest';
import {
  isKeyPublished,
  SIGNING_DISABLED,
  signingKeyName,
  signingKeysVersion,
} from '../api/image-signing.ts';
import type { ConfigMap } from '../api/kubernetes.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { decideSigningKeys, readSigning } from './signing-keys.ts';

const [first, second, third] = ['A', 'B', 'C'].map(
  (text) => `-----BEGIN PUBLIC KEY-----\n${text}\n-----END PUBLIC KEY-----\n`,
) as [string, string, string];
const at = (minute: number) => new Date(Date.UTC(2026, 4, 1, 0, minute));
const buildAt = (minute: number) =>
  ({ metadata: { name: 'b', creationTimestamp: at(minute).toISOString() } }) as MachineOSBuild;
const publish = (
  given: { readonly current: string } & Partial<Parameters<typeof decideSigningKeys>[0]>,
): ConfigMap | undefined =>
  decideSigningKeys({ signing: 'required', published: undefined, builds: [], now: at(0), ...given }) as
    | ConfigMap
    | undefined;
const names = (configMap: ConfigMap | undefined) => Object.values(configMap?.data ?? {});

test.each([
  [undefined, 'required'],
  [{}, 'required'],
  [{ signing: '' }, 'required'],
  [{ signing: 'Disabled' }, 'required'],
  [{ signing: 'off' }, 'required'],
  [{ signing: 'required' }, 'required'],
  [{ signing: ' disabled ' }, 'disabled'],
])('the switch %j means that signing is %s: only the word disables it', (data, expected) => {
  const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 's' } };
  expect(readSigning(data === undefined ? undefined : { ...object, data })).toBe(expected);
});

describe('a rotation', () => {
  const before = publish({ current: first });
  const rotated = publish({ current: second, published: before, builds: [buildAt(0)], now: at(5) });

  test('keeps the previous key while a build exists that it may have signed', () => {
    expect(names(rotated).sort()).toEqual([first, second]);
    const later = { current: second, published: rotated, now: at(60) };
    expect(publish({ ...later, builds: [buildAt(5), buildAt(30)] })).toBeUndefined();
    expect(names(publish({ ...later, builds: [buildAt(6), buildAt(30)] }))).toEqual([second]);
    expect(names(publish({ ...later, builds: [] }))).toEqual([second]);
  });

  test('keeps every earlier key as long as each is needed', () => {
    const builds = [buildAt(0), buildAt(7)];
    const again = publish({ current: third, published: rotated, builds, now: at(10) });
    expect(names(again).sort()).toEqual([first, second, third]);
    const rest = publish({ current: third, published: again, builds: [buildAt(7)], now: at(11) });
    expect(names(rest).sort()).toEqual([second, third]);
  });

  test('back to the first key makes that the current one again', () => {
    const back = publish({ current: first, published: rotated, builds: [buildAt(0)], now: at(9) });
    expect(names(back).sort()).toEqual([first, second]);
    expect(back?.metadata.annotations).toEqual({
      'shale.dev/retired-signing-keys': JSON.stringify({ [signingKeyName(second)]: at(9).toISOString() }),
    });
  });
});

describe('a key that a running build signs with', () => {
  const before = publish({ current: first });
  const rotate = (created: string, now: Date) =>
    publish({
      current: second,
      published: before,
      builds: [{ metadata: { name: 'b', creationTimestamp: created } } as MachineOSBuild],
      now,
    });

  test.each([
    [
      'was created in the second of the rotation',
      '2026-05-01T00:00:05Z',
      new Date('2026-05-01T00:00:05.123Z'),
    ],
    [
      "was created by a clock ahead of the operator's",
      '2026-05-01T00:00:05Z',
      new Date('2026-04-30T23:00:05Z'),
    ],
  ])('stays where that build %s', (_how, created, now) => {
    const rotated = rotate(created, now);
    expect(names(rotated).sort()).toEqual([first, second]);
    const build = { metadata: { name: 'b', creationTimestamp: created } } as MachineOSBuild;
    expect(publish({ current: second, published: rotated, builds: [build], now })).toBeUndefined();
  });
});

test('only an entry under the name of its key is a published key', () => {
  const name = signingKeyName(first);
  expect(isKeyPublished({ [name]: first }, name)).toBe(true);
  expect(isKeyPublished({ [name]: second }, name)).toBe(false);
  expect(isKeyPublished({ 'a.pub': first }, name)).toBe(false);
  expect(isKeyPublished({}, name)).toBe(false);
  expect(isKeyPublished(undefined, name)).toBe(false);
});

test('a key that is not under its own name is removed', () => {
  const published = publish({ current: first }) as ConfigMap;
  const forged = { ...published, data: { ...published.data, 'a.pub': third } };
  expect(names(publish({ current: first, published: forged, builds: [buildAt(0)] }))).toEqual([first]);
});

test('disabled signing publishes no key, which is another statement than none', () => {
  const disabled = publish({ current: '', signing: 'disabled', published: publish({ current: first }) });
  expect(disabled?.data).toEqual({});
  expect(publish({ current: '', signing: 'disabled', published: disabled as ConfigMap })).toBeUndefined();
  expect(publish({ current: '', signing: 'disabled' })).toBeDefined();
});

test('a version names exactly one set of keys', () => {
  expect(signingKeysVersion({})).toBe(SIGNING_DISABLED);
  expect(signingKeysVersion({ a: first, b: second })).toBe(signingKeysVersion({ b: second, a: first }));
  expect(signingKeysVersion({ a: first })).not.toBe(signingKeysVersion({ a: second }));
  expect(signingKeysVersion({ a: first })).not.toBe(signingKeysVersion({ b: first }));
});
