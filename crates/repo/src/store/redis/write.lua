-- Does changes of one shard and counts them: all or nothing, because Redis runs a script alone, and refuses its first
-- change if memory is full.
--
-- KEYS  1 counts │ 2 names │ 3 notes │ 4.. records
-- ARGV  1 bytes of a key before the name │ 2 "1" if names are kept in order │ 3 "1" if all records are put, and no key
--       comes twice
--       4.. for each record: it, or "" to delete │ then pairs: a note's key, "+" and the note or "" to forget it
local before_name, is_ordered = tonumber(ARGV[1]), ARGV[2] == '1'
local added, replaced, deleted, bytes = 0, 0, 0, 0
-- The stack of Lua has room for 8000 arguments.
local CHUNK = 2000

-- True if none of the records was stored, and all are now.
local function put_if_new(first, last)
    local records, names, count, grown = {}, {}, 0, 0
    for i = first, last do
        local key, record = KEYS[i], ARGV[i]
        records[count + 1], records[count + 2] = key, record
        if is_ordered then names[count + 1], names[count + 2] = 0, string.sub(key, before_name + 1) end
        grown = grown + #record + #key - before_name
        count = count + 2
    end
    if redis.call('MSETNX', unpack(records)) == 0 then return false end
    if is_ordered then redis.call('ZADD', KEYS[2], unpack(names)) end
    added, bytes = added + count / 2, bytes + grown
    return true
end

local function change(key, record)
    local old
    if record ~= '' then
        old = redis.call('SET', key, record, 'GET')
        bytes = bytes + #record + #key - before_name
        if old then replaced = replaced + 1 else added = added + 1 end
        if is_ordered and not old then redis.call('ZADD', KEYS[2], 0, string.sub(key, before_name + 1)) end
    else
        old = redis.call('GETDEL', key)
        if old then deleted = deleted + 1 end
        if is_ordered and old then redis.call('ZREM', KEYS[2], string.sub(key, before_name + 1)) end
    end
    if old then bytes = bytes - #old - #key + before_name end
end

-- New Data is the common case, and one command for many records takes less time.
for first = 4, #KEYS, CHUNK do
    local last = math.min(first + CHUNK - 1, #KEYS)
    if ARGV[3] ~= '1' or not put_if_new(first, last) then
        for i = first, last do change(KEYS[i], ARGV[i]) end
    end
end
for i = #KEYS + 1, #ARGV, 2 do
    if ARGV[i + 1] == '' then
        redis.call('HDEL', KEYS[3], ARGV[i])
    else
        redis.call('HSET', KEYS[3], ARGV[i], string.sub(ARGV[i + 1], 2))
    end
end
if added ~= deleted then redis.call('HINCRBY', KEYS[1], 'records', added - deleted) end
if bytes ~= 0 then redis.call('HINCRBY', KEYS[1], 'bytes', bytes) end
return {added, replaced, deleted}
