/**
 * Redis runs a script alone and logs it whole, so comparison, fence and data are one step. Nothing is written before everything has
 * been compared, for what a script has written stays when it fails later on. Lua's numbers are doubles: exact for every token.
 * Tokens are stored and returned as the text that came in.
 *
 * Answers: {"ok", ...}, {"stale", which, highest}, {"fence", which} for a register that holds no token, {"type", which, type}.
 */
const compare = `
local function highestOf(key)
  local found = redis.pcall('GET', key)
  if type(found) == 'table' then return nil end
  if not found then return '0' end
  if not string.match(found, '^%d+$') then return nil end
  return found
end
`;

/**
 * KEYS: the fences, then each write's key. ARGV: number of fences, their tokens, number of writes, and for each of these command, wanted
 * type, number of arguments, arguments.
 */
export const writeScript: string = `${compare}
local fences = tonumber(ARGV[1])
for at = 1, fences do
  local highest = highestOf(KEYS[at])
  if not highest then return {'fence', at} end
  if tonumber(highest) > tonumber(ARGV[at + 1]) then return {'stale', at, highest} end
end
local writes, at, becomes = {}, fences + 3, {}
for number = 1, tonumber(ARGV[fences + 2]) do
  local key, wanted = KEYS[fences + number], ARGV[at + 1]
  local found = becomes[key] or redis.call('TYPE', key).ok
  if wanted ~= 'any' and found ~= 'none' and found ~= wanted then return {'type', number, found} end
  if ARGV[at] == 'SET' then found = 'string' elseif ARGV[at] == 'DEL' then found = 'none' else found = wanted end
  becomes[key] = found
  local write = {ARGV[at], key}
  for each = 1, tonumber(ARGV[at + 2]) do write[each + 2] = ARGV[at + 2 + each] end
  writes[number] = write
  at = at + 3 + tonumber(ARGV[at + 2])
end
for each = 1, fences do redis.call('SET', KEYS[each], ARGV[each + 1]) end
local replies = {'ok'}
for number, write in ipairs(writes) do replies[number + 1] = redis.call(unpack(write)) end
return replies
`;

/** KEYS: the fence, the data. ARGV: the token, the command, its further arguments. */
export const readScript: string = `${compare}
local highest = highestOf(KEYS[1])
if not highest then return {'fence', 1} end
if tonumber(highest) > tonumber(ARGV[1]) then return {'stale', 1, highest} end
local read = {ARGV[2], KEYS[2]}
for at = 3, #ARGV do read[at] = ARGV[at] end
local reply = redis.call(unpack(read))
if tonumber(highest) < tonumber(ARGV[1]) then redis.call('SET', KEYS[1], ARGV[1]) end
return {'ok', reply}
`;
