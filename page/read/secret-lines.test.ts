import { expect, test } from 'vitest';
import { maskSecrets } from './secret-lines.ts';

test.each([
  ['+https_proxy=http://user:hunter2@proxy.example.com:3128', '+https_proxy=http://…@proxy.example.com:3128'],
  ['+proxy = "http://token@proxy"', '+proxy = "http://…@proxy"'],
  ['-db_password=hunter2', '-db_password=…'],
  ['+  password: "hunter2"', '+  password: "…"'],
  ["+export API_KEY='abc'", "+export API_KEY='…'"],
  ['+Environment=TOKEN=abc', '+Environment=TOKEN=…'],
  ['+  {"auth": "dXNlcjpwYXNz"}', '+  {"auth": "…"}'],
  ['+Authorization: Bearer abcdefghijkl', '+Authorization: Bearer …'],
  // Nothing that only sounds like it.
  ['+author=somebody', '+author=somebody'],
  ['+ tokens are not used', '+ tokens are not used'],
  ['+server time.example.com iburst', '+server time.example.com iburst'],
  ['+https://example.com/a@b', '+https://example.com/a@b'],
])('%s', (line, masked) => {
  expect(maskSecrets(line)).toBe(masked);
});
