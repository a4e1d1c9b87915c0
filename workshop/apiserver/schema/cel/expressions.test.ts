import { describe, expect, test } from 'vitest';
import { compileExpression } from './expressions.ts';

const result = (expression: string, self?: unknown) => compileExpression(expression, ['self'])({ self });

describe('formats', () => {
  test.each([
    ['dns1123Label', 'my-name', '1.2', 'must not contain dots'],
    ['dns1123Subdomain', 'example.com', 'Example', 'a lowercase RFC 1123 subdomain must consist of'],
    ['dns1035Label', 'abc-123', '1a', 'a DNS-1035 label must consist of'],
    ['qualifiedName', 'example.com/MyName', 'a/b/c', 'a qualified name must consist of'],
    ['qualifiedName', 'MyName', '/x', 'prefix part must be non-empty'],
    ['dns1123LabelPrefix', 'my-name-', '-a', 'a lowercase RFC 1123 label must consist of'],
    ['dns1123SubdomainPrefix', 'my.name-', '.a', 'a lowercase RFC 1123 subdomain must consist of'],
    ['dns1035LabelPrefix', 'my-name-', '1a-', 'a DNS-1035 label must consist of'],
    ['labelValue', '', 'a b', 'a valid label must be an empty string or consist of'],
    ['uri', 'https://example.com/a', 'a b', 'invalid URI'],
    ['uuid', '123e4567-e89b-12d3-a456-426614174000', '123', 'does not match the UUID format'],
    ['byte', 'aGVsbG8=', 'aGVsbG8', 'invalid base64'],
    ['date', '2021-01-01', '2021-13-01', 'invalid date'],
    ['datetime', '2021-01-01T00:00:00Z', '2021-01-01', 'invalid datetime'],
  ])('%s has %s and not %s', (name, right, wrong, message) => {
    const validate = `format.${name}().validate(self)`;
    expect(result(`${validate}.hasValue()`, right)).toBe(false);
    expect(result(`${validate}.hasValue()`, wrong)).toBe(true);
    expect(result(`${validate}.value().join('; ')`, wrong)).toContain(message);
    expect(result(`format.named('${name}').value().validate(self).hasValue()`, right)).toBe(false);
  });

  test('have a longest text', () => {
    const long = 'a'.repeat(64);
    expect(result('format.dns1123Label().validate(self).value()', long)).toEqual([
      'must be no more than 63 characters',
    ]);
  });

  test('that there are not are none', () => {
    expect(result("format.named('smile').hasValue()")).toBe(false);
    expect(() => compileExpression('format.smile().validate(self)', ['self'])).toThrow('smile');
  });
});

test.each<[string, unknown]>([
  ["matches('abc', '^a')", true],
  ["'abc'.matches('^b')", false],
  ["'abc 123'.find('[0-9]+')", '123'],
  ["'abc'.find('[0-9]+')", ''],
  ["'123 abc 456'.findAll('[0-9]+')", ['123', '456']],
  ["'123 abc 456'.findAll('[0-9]+', 1)", ['123']],
  ["'*.a.*.b'.replace('*.', '', 1)", 'a.*.b'],
  ["'*.a.*.b'.replace('*.', '')", 'a.b'],
  ["isIP('10.0.0.1')", true],
  ["isIP('10.0.0.256')", false],
  ["isIP('fe80::1%eth0')", false],
  ["isIP('::ffff:1.2.3.4')", false],
  ["ip('::1').family()", 6n],
  ["isCIDR('192.168.0.0/16')", true],
  ["isCIDR('192.168.0.0/33')", false],
  ["cidr('192.168.0.0/24').containsIP('192.168.0.1')", true],
  ["cidr('192.168.0.0/24').containsIP(ip('192.168.1.1'))", false],
  ["cidr('::1/128').prefixLength()", 128n],
  ["isURL('https://user:pass@example.com:80/path?query=val#fragment')", true],
  ["isURL('/absolute-path')", true],
  ["isURL('../relative-path')", false],
  ["isURL('https://a:b:c/')", false],
  ["url('https://[::1]:80/').getHost()", '[::1]:80'],
  ["url('https://[::1]:80/').getHostname()", '::1'],
  ["url('https://example.com:80/').getPort()", '80'],
  ["url('/path').getHost()", ''],
  ["url('https://example.com').getEscapedPath()", ''],
  ["url('https://example.com/path with spaces/').getEscapedPath()", '/path%20with%20spaces/'],
  ["url('https://example.com/path?k1=a&k2=b&k2=c').getQuery()['k2']", ['b', 'c']],
  ["quantity('200M').compareTo(quantity('0.2G'))", 0n],
  ["quantity('50M').compareTo(quantity('50Mi'))", -1n],
  ["quantity('150Mi').isGreaterThan(quantity('100Mi'))", true],
  ["quantity('50M').isLessThan(quantity('1e9'))", true],
  ["quantity('-1m').sign()", -1n],
  ["isQuantity('200K')", false],
  ["isQuantity('1.3Gi')", true],
])('%s', (expression, expected) => {
  expect(result(expression)).toEqual(expected);
});
