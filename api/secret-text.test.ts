import { expect, test } from 'vitest';
import { maskSecrets, maskStart } from './secret-text.ts';

test.each([
  ['+https_proxy=http://user:hunter2@proxy.example.com:3128', '+https_proxy=http://…@proxy.example.com:3128'],
  ['+proxy = "http://token@proxy"', '+proxy = "http://…@proxy"'],
  ['-db_password=hunter2', '-db_password=…'],
  ['+  password: "hunter2"', '+  password: "…"'],
  ["+export API_KEY='abc'", "+export API_KEY='…'"],
  ['+Environment=TOKEN=abc', '+Environment=TOKEN=…'],
  ['+  {"auth": "dXNlcjpwYXNz"}', '+  {"auth": "…"}'],
  ['+Authorization: Bearer abcdefghijkl', '+Authorization: Bearer …'],
  ['+password = "correct horse battery"', '+password = "…"'],
  ['+{"password":"a\\"b","c":1}', '+{"password":"…","c":1}'],
  ['+"{\\"client_secret\\":\\"a b\\",\\"c\\":1}"', '+"{\\"client_secret\\":\\"…\\",\\"c\\":1}"'],
  ['+ExecStart=/usr/bin/join --token abc --name x', '+ExecStart=/usr/bin/join --token … --name x'],
  ['+PrivateKey = abc=', '+PrivateKey = …'],
  ['+DB_PASS=abc token=def', '+DB_PASS=… token=…'],
  ["+password='never closed", "+password='…"],
  // Nothing that only sounds like it.
  ['+bypass=yes', '+bypass=yes'],
  ['+password:', '+password:'],
  ['+author=somebody', '+author=somebody'],
  ['+ tokens are not used', '+ tokens are not used'],
  ['+server time.example.com iburst', '+server time.example.com iburst'],
  ['+https://example.com/a@b', '+https://example.com/a@b'],
])('%s', (line, masked) => {
  expect(maskSecrets(line)).toBe(masked);
});

test.each([
  ['abcdef', 'abcdef'],
  ['abcdefgh', 'abcdef…'],
  ['token=abcdef', 'token=…'],
])('the start of %s is %s', (line, start) => {
  expect(maskStart(line, 6)).toBe(start);
});

test('a credential is masked wherever the line is cut', () => {
  const secrets = ['http://user:hunter2@proxy/', 'Bearer hunter2hunter2', 'password="hunter2 and more"'];
  for (const secret of secrets) {
    const line = `+${'x'.repeat(20)} ${secret} ${'x'.repeat(100)}`;
    for (let cut = 1; cut < line.length; cut += 1) expect(maskStart(line, cut)).not.toContain('hun');
  }
});
