import { expect, it } from 'vitest';
import { parseDropInFlag, parseFileFlag, parseUnitFlag } from './content-flags.ts';

const NO_OWNER = { user: undefined, group: undefined };

it.each([
  ['/etc/a=./a', { path: '/etc/a', source: './a', mode: 0o644, ...NO_OWNER }],
  ['/etc/a=./a:0600', { path: '/etc/a', source: './a', mode: 0o600, ...NO_OWNER }],
  [
    '/etc/a=a:755:core',
    { path: '/etc/a', source: 'a', mode: 0o755, user: { name: 'core' }, group: undefined },
  ],
  [
    '/etc/a=a:0640:0:chrony',
    { path: '/etc/a', source: 'a', mode: 0o640, user: { id: 0 }, group: { name: 'chrony' } },
  ],
  ['/etc/a=a:0640::7', { path: '/etc/a', source: 'a', mode: 0o640, user: undefined, group: { id: 7 } }],
  ['/etc/a=a:b.conf', { path: '/etc/a', source: 'a:b.conf', mode: 0o644, ...NO_OWNER }],
  ['/etc/a=b=c', { path: '/etc/a', source: 'b=c', mode: 0o644, ...NO_OWNER }],
])('reads the file %s', (text, flag) => {
  expect(parseFileFlag(text)).toEqual(flag);
});

it.each(['/etc/a', '=a', '/etc/a=', 'etc/a=a'])('refuses the file %s with an example', (text) => {
  expect(() => parseFileFlag(text)).toThrow('/etc/chrony.conf=./chrony.conf');
});

it('reads units and drop-ins', () => {
  expect(parseUnitFlag('a.service=./a.service')).toEqual({ unit: 'a.service', source: './a.service' });
  expect(parseDropInFlag('a.service/10-b.conf=b')).toEqual({
    unit: 'a.service',
    name: '10-b.conf',
    source: 'b',
  });
});

it.each(['a.service=b', 'a.service/=b', '/b=b', 'a/b/c=b'])(
  'refuses the drop-in %s with an example',
  (text) => {
    expect(() => parseDropInFlag(text)).toThrow('chronyd.service/10-restart.conf=./restart.conf');
  },
);
