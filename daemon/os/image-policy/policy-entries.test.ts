import { describe, expect, test } from 'vitest';
import { parseReference } from '../../../image/reference.ts';
import { imageOf } from '../../../test/fixtures/step-context.ts';
import { mergePolicy, type OwnEntries, type VerifiedImage } from './policy-entries.ts';
import { evaluatePolicy } from './signature-policy.ts';

const REPOSITORY = 'registry.example.com/os/worker';
const ANYTHING = [{ type: 'insecureAcceptAnything' }];
const open = `${JSON.stringify({ default: ANYTHING })}\n`;
const signed = (digit: string, key: string): VerifiedImage => ({ image: imageOf(digit), publicKey: key });
const keyData = (key: string) => Buffer.from(key).toString('base64');
const docker = (entries: object, fallback: object = ANYTHING) =>
  JSON.stringify({ default: fallback, transports: { docker: entries } });

function merge(text: string, images: readonly VerifiedImage[], own: OwnEntries = {}) {
  const merged = mergePolicy(text, own, images);
  if (merged.kind !== 'merged') throw new Error(merged.why);
  return merged;
}
const decision = (text: string, digit: string) => evaluatePolicy(text, parseReference(imageOf(digit)));
const requires = (key: string) => ({
  kind: 'allow',
  signatures: [{ keys: [{ kind: 'text', pem: key }] }],
});

describe('a policy that takes anything', () => {
  test('requires the key that signed the latest image, for its repository alone', () => {
    const { text, entries, open: unsigned } = merge(open, [signed('1', 'A')]);
    expect(entries).toEqual({ [REPOSITORY]: [keyData('A')] });
    expect(decision(text, '1')).toEqual(requires('A'));
    expect(decision(text, '2')).toEqual(requires('A'));
    const elsewhere = parseReference('registry.example.com/os/other:1');
    expect(evaluatePolicy(text, elsewhere)).toEqual({ kind: 'allow', signatures: [] });
    expect(unsigned).toEqual([]);
  });

  test('keeps what another key signed pullable after a rotation, and nothing else of that key', () => {
    const { text } = merge(open, [signed('1', 'A'), signed('2', 'B')]);
    expect(decision(text, '1')).toEqual(requires('A'));
    expect(decision(text, '2')).toEqual(requires('B'));
    expect(decision(text, '3')).toEqual(requires('B'));
  });

  test('has no field that containers/image before 5.32.2 takes for an error', () => {
    expect(merge(open, [signed('1', 'A'), signed('2', 'B')]).text).not.toMatch(/keyDatas|keyPaths/);
  });

  test('is as it was once nothing is required', () => {
    const images = [signed('1', 'A'), signed('2', 'B')];
    const before = docker({ 'quay.io': [{ type: 'reject' }] });
    const { text, entries } = merge(before, images);
    expect(merge(text, images, entries)).toMatchObject({ text, entries });
    expect(JSON.parse(merge(text, [], entries).text)).toEqual(JSON.parse(before));
    const first = merge(open, images);
    expect(JSON.parse(merge(first.text, [], first.entries).text)).toEqual(JSON.parse(open));
  });

  test('loses the entries of keys that were used before', () => {
    const before = merge(open, [signed('1', 'A'), signed('2', 'B')]);
    const after = merge(before.text, [signed('2', 'B')], before.entries);
    expect(after.entries).toEqual({ [REPOSITORY]: [keyData('B')] });
    expect(decision(after.text, '1')).toEqual(requires('B'));
  });
});

describe("an admin's policy", () => {
  test.each([
    ['rejects everything', JSON.stringify({ default: [{ type: 'reject' }] })],
    ['asks for a GPG key', docker({ 'registry.example.com': [{ type: 'signedBy', keyPath: '/k' }] })],
    ['asks for a key', docker({ 'registry.example.com/os': [{ type: 'sigstoreSigned', keyData: 'QQ==' }] })],
    ['has an entry of its own', docker({ [REPOSITORY]: ANYTHING }, [{ type: 'reject' }])],
    ['asks for a key of a domain', docker({ '*.example.com': [{ type: 'reject' }] })],
  ])('that %s is not loosened', (_name, text) => {
    const merged = merge(text, [signed('1', 'A')]);
    expect(merged).toMatchObject({ text, entries: {} });
  });

  test('that takes the images of this repository unsigned is reported', () => {
    const text = docker({ [REPOSITORY]: ANYTHING });
    expect(merge(text, [signed('1', 'A')]).open).toEqual([imageOf('1')]);
    expect(merge(JSON.stringify({ default: [{ type: 'reject' }] }), [signed('1', 'A')]).open).toEqual([]);
  });

  test('keeps its entry for one image', () => {
    const text = docker({ [imageOf('1')]: [{ type: 'reject' }] });
    const { text: after } = merge(text, [signed('1', 'A'), signed('2', 'B')]);
    expect(decision(after, '1').kind).toBe('reject');
  });

  test('keeps an entry that was changed since Shale wrote it', () => {
    const before = merge(open, [signed('1', 'A')]);
    const changed = before.text.replace(keyData('A'), keyData('C'));
    expect(merge(changed, [], before.entries).text).toBe(changed);
  });

  test.each([
    '',
    '[]',
    '{}',
    '{"default":[]}',
    '{"default":[{"type":"unheard"}]}',
    '{"default":[{"type":"reject"}],"default":[{"type":"insecureAcceptAnything"}]}',
    '{"default":[{"type":"insecureAcceptAnything"}],"more":1}',
  ])('that reads %j is left alone', (text) => {
    expect(mergePolicy(text, {}, [signed('1', 'A')])).toMatchObject({ kind: 'unusable' });
  });
});
