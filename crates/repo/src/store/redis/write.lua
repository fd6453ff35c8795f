-- Does changes of one shard and counts them: all or nothing, because Redis runs a script alone, and refuses its first
-- command if memory is full.
--
-- KEYS  1 counts │ 2 names │ 3 notes │ 4.. records
-- ARGV  1 bytes of a key before the name │ 2 "1" if names are kept in order
--       3.. for each record: it, or "" to delete │ then pairs: a note's key, "+" and the note or "" to forget it
local before_name, is_ordered = tonumber(ARGV[1]), ARGV[2] == '1'
local added, replaced, deleted, bytes = 0, 0, 0, 0
for i = 4, #KEYS do
    local key, record = KEYS[i], ARGV[i - 1]
    if record ~= '' then
        local old = redis.call('SET', key, record, 'GET')
        if old then
            replaced = replaced + 1
            bytes = bytes + #record - #old
        else
            added = added + 1
            bytes = bytes + #record + #key - before_name
            if is_ordered then redis.call('ZADD', KEYS[2], 0, string.sub(key, before_name + 1)) end
        end
    else
        local old = redis.call('GETDEL', key)
        if old then
            deleted = deleted + 1
            bytes = bytes - #old - #key + before_name
            if is_ordered then redis.call('ZREM', KEYS[2], string.sub(key, before_name + 1)) end
        end
    end
end
for i = #KEYS, #ARGV, 2 do
    if ARGV[i + 1] == '' then
        redis.call('HDEL', KEYS[3], ARGV[i])
    else
        redis.call('HSET', KEYS[3], ARGV[i], string.sub(ARGV[i + 1], 2))
    end
end
if added ~= deleted then redis.call('HINCRBY', KEYS[1], 'records', added - deleted) end
if bytes ~= 0 then redis.call('HINCRBY', KEYS[1], 'bytes', bytes) end
return {added, replaced, deleted}
