import { describe, expect, test } from 'vitest';
import {
  isKeyPublished,
  SIGNING_DISABLED,
  signingKeyName,
  signingKeysVersion,
} from '../api/image-signing.ts';
import type { ConfigMap } from '../api/kubernetes.ts';
import type { MachineOSBuild } from '../api/machine-os-build.ts';
import { decideSigningKeys } from './signing-keys.ts';

const [first, second, third] = ['A', 'B', 'C'].map(
  (text) => `-----BEGIN PUBLIC KEY-----\n${text}\n-----END PUBLIC KEY-----\n`,
) as [string, string, string];
/** A build whose image this key signed; undefined for one that has not succeeded. */
const signedBy = (key: string | undefined, name = 'b') =>
  ({
    metadata: { name },
    ...(key === undefined ? {} : { status: { signingKey: signingKeyName(key) } }),
  }) as MachineOSBuild;
const publish = (
  given: { readonly current: string } & Partial<Parameters<typeof decideSigningKeys>[0]>,
): ConfigMap | undefined =>
  decideSigningKeys({ signing: 'required', published: undefined, builds: [], ...given }) as
    | ConfigMap
    | undefined;
const names = (configMap: ConfigMap | undefined) => Object.values(configMap?.data ?? {});

describe('a rotation', () => {
  const before = publish({ current: first });
  const builds = [signedBy(first)];
  const rotated = publish({ current: second, published: before, builds });

  test('keeps the previous key while a build exists that it signed', () => {
    expect(names(rotated).sort()).toEqual([first, second]);
    const later = { current: second, published: rotated };
    expect(publish({ ...later, builds: [...builds, signedBy(second)] })).toBeUndefined();
    expect(names(publish({ ...later, builds: [signedBy(second)] }))).toEqual([second]);
    expect(names(publish({ ...later, builds: [] }))).toEqual([second]);
  });

  test('keeps every earlier key as long as each is needed', () => {
    const both = [...builds, signedBy(second)];
    const again = publish({ current: third, published: rotated, builds: both });
    expect(names(again).sort()).toEqual([first, second, third]);
    const rest = publish({ current: third, published: again, builds: [signedBy(second)] });
    expect(names(rest).sort()).toEqual([second, third]);
  });

  test('back to the first key makes that the current one again', () => {
    const back = publish({ current: first, published: rotated, builds: [signedBy(second)] });
    expect(back).toBeUndefined();
    expect(names(publish({ current: first, published: rotated, builds }))).toEqual([first]);
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
  expect(names(publish({ current: first, published: forged, builds: [signedBy(third)] }))).toEqual([first]);
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
