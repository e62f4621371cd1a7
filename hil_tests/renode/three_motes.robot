*** Settings ***
Documentation     Motes with the real image on Renode: they find their tree, sample, and their rows come out of the root's UART.
Resource          resource.robot

*** Variables ***
${HTTP}           127.0.0.1:18642

*** Test Cases ***
Rows Of All Motes Come Out Of The Root's Serial Line
    [Documentation]    ask.py holds each value against the description, and each mote's level against its distance from the root:
    ...                who is out of the root's range has come by a hop.
    Create Network
    Start Emulation
    ${asked}=    Run Process    ${PYTHON}    -m    hil_tests.renode.ask    ${NETWORK}    --port    ${PORT}    --timeout    900
    ...    cwd=${PROJECT}    timeout=1000s
    Should Have Succeeded    ${asked}

The Gateway Works Against It Unchanged
    Create Network    speed=1    quantum=0.2ms
    Start Emulation
    Remove Directory    ${TEMPDIR}/skerry-renode-data    recursive=True
    Start Process    ${SKERRY}    gateway    --link    socket://127.0.0.1:${PORT}    --listen    ${HTTP}
    ...    --data    ${TEMPDIR}/skerry-renode-data    alias=gateway    stderr=${TEMPDIR}/skerry-renode-gateway.log
    Wait Until Keyword Succeeds    180s    2s    Gateway Answers
    ${asked}=    Run Process    ${SKERRY}    query    SELECT nodeid, temp FROM sensors SAMPLE PERIOD 5 s    --format    csv
    ...    --rows    9    --for    600s    --url    http://${HTTP}    timeout=700s
    Should Have Succeeded    ${asked}
    ${lines}=    Evaluate    $asked.stdout.strip().splitlines()
    Length Should Be    ${lines}    10
    [Teardown]    Run Keywords    Terminate Process    gateway    AND    Test Teardown

*** Keywords ***
Gateway Answers
    ${status}=    Run Process    ${SKERRY}    status    --url    http://${HTTP}
    Should Be Equal As Integers    ${status.rc}    0
